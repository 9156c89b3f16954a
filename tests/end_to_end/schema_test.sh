# What `penstock schema` prints is a JSON Schema by which an independent validator accepts the
# examples and the documented jobs, and refuses mistakes that the command refuses too.
. tests/end_to_end/common.sh
penstock schema >job.json
penstock schema cluster >cluster.json
/usr/bin/python3 "$top/tests/end_to_end/check_schema.py" "$top" job.json cluster.json
for file in wrong_job.*.yaml; do
    fails 3 'wrong_job' "$PENSTOCK" train "$file"
done

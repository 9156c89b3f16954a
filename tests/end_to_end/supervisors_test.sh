# The examples for systemd, Slurm and Kubernetes: they start again what must be started again, and
# call the command as it can be called. What of them is not here is replaced by a few lines.
. tests/end_to_end/common.sh
examples=$top/examples/recovery

# ---- Slurm: a worker that is killed and a coordinator that is lost are started again; a mistake is not
mkdir bin
cat >bin/srun <<'END'
#!/bin/bash
while [[ $1 == --* ]]; do shift; done
exec "$@"
END
cat >bin/scancel <<'END'
#!/bin/bash
echo scancel "$@" >>calls
for pid in $(cat worker.pid); do kill -TERM "$pid"; done
END
cat >bin/penstock <<'END'
#!/bin/bash
echo "$@" >>calls
number=$(grep -c "^$1 " calls)
if [ "$1" = worker ]; then
    [ "$number" -gt 1 ] || kill -9 $$
    echo $$ >worker.pid
    trap 'exit 0' TERM
    while :; do sleep 0.05; done
fi
while [ ! -e worker.pid ]; do sleep 0.05; done
code=$(sed -n "${number}p" codes)
[ "$code" != 137 ] || kill -9 $$
exit "$code"
END
chmod +x bin/*
# slurm CODES EXPECTED COUNT: what the coordinator ends with each time; the script's exit code; how often it was started
slurm() {
    local code=0
    rm -f calls worker.pid
    printf '%s\n' $1 >codes
    PATH=$work/bin:$PATH SLURM_JOB_ID=17 timeout 60 bash "$examples/train.sbatch" >slurm.out 2>&1 || code=$?
    [ "$code" -eq "$2" ] || die "exit code $code after $1: $(cat slurm.out)"
    [ "$(grep -c '^train job.yaml --continue$' calls)" -eq "$3" ] || die "after $1: $(cat calls)"
    [ "$(grep -c '^worker --listen 0.0.0.0:7070 --store . --tls ca.pem,.*.pem,.*.key$' calls)" -eq 2 ] || die "workers: $(cat calls)"
    grep -q '^scancel --signal=TERM 17.0$' calls || die "no scancel: $(cat calls)"
}
slurm '6 137 0' 0 3
slurm '6 3' 3 2

# ---- what is called can be called
for file in "$examples"/*.service; do
    read -r _ verb rest <<<"$(sed -n 's/^ExecStart=//p' "$file")"
    for option in $(grep -oE -- '--[a-z]+' <<<"$rest"); do
        penstock "$verb" --help | grep -q -- " $option\b" || die "$file: $verb has no $option"
    done
    if command -v systemd-analyze >/dev/null; then
        sed "s#^ExecStart=penstock#ExecStart=$PENSTOCK#" "$file" >"$(basename "$file")"
        systemd-analyze verify "./$(basename "$file")" 2>said || die "$file: $(cat said)"
        ! grep "$(basename "$file")" said || die "$file"
    fi
done
python3 - "$examples/kubernetes.yaml" <<'END' >called
import sys
import yaml
parts = {part["kind"]: part for part in yaml.safe_load_all(open(sys.argv[1], encoding="utf-8"))}
assert set(parts) == {"Service", "StatefulSet", "Job"}, parts
workers, train = parts["StatefulSet"]["spec"], parts["Job"]["spec"]
assert workers["serviceName"] == parts["Service"]["metadata"]["name"]
assert workers["selector"]["matchLabels"] == workers["template"]["metadata"]["labels"] == parts["Service"]["spec"]["selector"]
for spec in (workers["template"]["spec"], train["template"]["spec"]):
    volumes = {volume["name"] for volume in spec["volumes"]}
    for container in spec["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        print(" ".join(container["args"]))
END
grep -qx 'train /job/job.yaml --continue' called
while read -r verb rest; do
    for option in $(grep -oE -- '--[a-z]+' <<<"$rest"); do
        penstock "$verb" --help | grep -q -- " $option\b" || die "kubernetes.yaml: $verb has no $option"
    done
done <called

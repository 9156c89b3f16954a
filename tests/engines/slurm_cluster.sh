# shellcheck shell=bash
# A cluster of Slurm with four nodes, all on this host: `. tests/engines/slurm_cluster.sh`, then
# slurm_start FOLDER and slurm_stop. Needs root, munge, slurmctld and slurmd.

slurm_pids=()

# slurm_free COUNT: a port from which on COUNT are free
slurm_free() {
    python3 - "$1" <<'END'
import random, socket, sys
count = int(sys.argv[1])
for _ in range(200):
    first = random.randrange(20000, 30000)
    try:
        sockets = [socket.create_server(("", first + i)) for i in range(count)]
    except OSError:
        continue
    for one in sockets:
        one.close()
    print(first)
    break
END
}

slurm_start() {
    local folder=$1 host port n
    host=$(hostname -s)
    port=$(slurm_free 6)
    mkdir -p "$folder/state"
    chmod 755 "$folder"
    dd if=/dev/urandom of="$folder/munge.key" bs=128 count=1 2>/dev/null
    chmod 600 "$folder/munge.key"
    munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.sock" \
        --pid-file="$folder/munge.pid" --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" \
        >"$folder/munged.out" 2>&1 &
    slurm_pids+=($!)
    cat >"$folder/slurm.conf" <<END
ClusterName=check
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.sock
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool.%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
KillWait=20
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
RequeueExit=6
SchedulerParameters=sched_interval=1,bf_interval=1,defer_batch
NodeName=c[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1))-$((port + 4)) CPUs=32 RealMemory=2000 State=UNKNOWN
PartitionName=low Nodes=c[1-4] Default=YES PriorityTier=1 GraceTime=60
PartitionName=high Nodes=c[1-4] PriorityTier=10 PreemptMode=OFF
END
    export SLURM_CONF=$folder/slurm.conf
    for _ in $(seq 100); do [ -S "$folder/munge.sock" ] && break || sleep 0.1; done
    slurmctld -D -f "$SLURM_CONF" >"$folder/slurmctld.out" 2>&1 &
    slurm_pids+=($!)
    for n in 1 2 3 4; do
        slurmd -D -N "c$n" -f "$SLURM_CONF" >"$folder/slurmd.$n.out" 2>&1 &
        slurm_pids+=($!)
    done
    for _ in $(seq 200); do
        [ "$(sinfo -h -o %T -p low 2>/dev/null)" = idle ] && return 0
        sleep 0.2
    done
    tail -5 "$folder"/slurm*.log >&2
    return 1
}

slurm_stop() {
    local n
    for ((n = ${#slurm_pids[@]} - 1; n >= 0; n--)); do
        kill "${slurm_pids[n]}" 2>/dev/null
        wait "${slurm_pids[n]}" 2>/dev/null
    done
    slurm_pids=()
}

#!/bin/sh
# Runs two ranks of a command as if on two machines, a and b: each with network
# and name of its own, joined by a cable. Run it by
#   unshare --map-root-user --net --mount --uts sh two_networks.sh MPIRUN COMMAND
set -eu
mount -t tmpfs none /run
ip netns add a
ip netns add b
ip link add cable netns a type veth peer name cable netns b
for place in a:1 b:2; do
  machine=${place%:*}
  ip -n "$machine" address add "10.99.0.${place#*:}/24" dev cable
  ip -n "$machine" link set lo up
  ip -n "$machine" link set cable up
done
# What mpirun calls in place of ssh: with a host, and words of a command.
agent=/run/agent.sh
cat > "$agent" <<'AGENT'
#!/bin/sh
shift
exec ip netns exec b unshare --uts sh -c "hostname b; $*"
AGENT
chmod +x "$agent"
hostname a
mpirun=$1
shift
exec ip netns exec a "$mpirun" -n 2 --host 10.99.0.1:1,10.99.0.2:1 \
  --bind-to none --prtemca plm_ssh_agent "$agent" \
  --prtemca oob_tcp_if_include 10.99.0.0/24 \
  --mca btl tcp,self --mca pml ob1 --mca btl_tcp_if_include 10.99.0.0/24 "$@"

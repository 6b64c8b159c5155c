#!/bin/sh
# First process of the virtual machine: mounts what a node has mounted, and leaves the rest to qemu's guest agent.
set -e
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tmpfs tmp /tmp
mount /dev/vdb /var/lib/node
# As the pod of the chart has them.
for each in sys proc dev; do mount --rbind /$each /host/$each; done
ip link set lo up
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
exec tini -- qemu-ga --method=isa-serial --path=/dev/ttyS1 --statedir=/run

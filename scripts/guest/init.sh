#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
# The first process of guest.sh's guest, in its initramfs: loads the modules, puts a tmpfs over the host's files, and
# continues with run.sh there.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

die()
{
	echo "init.sh: $1" >/dev/console
	sleep 1
	reboot -f
}

# mount_host TAG FOLDER OPTIONS
mount_host()
{
	mount -t 9p -o "trans=virtio,version=9p2000.L,msize=512000,$3" "$1" "$2" || die "cannot mount $2"
}

for module in /modules/*.ko; do
	insmod "$module" || die "cannot load $module"
done

mkdir -p /host /changes /root
mount_host host /host ro,cache=loose
mount -t tmpfs changes /changes
mkdir /changes/upper /changes/work
mount -t overlay -o lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work root /root ||
	die 'cannot lay a tmpfs over the files of the host'

for folder in proc sys dev run; do mkdir -p "/root/$folder"; done
for folder in proc sys dev; do mount --move "/$folder" "/root/$folder"; done
ln -s /proc/self/fd /root/dev/fd
ln -s fd/0 /root/dev/stdin
ln -s fd/1 /root/dev/stdout
ln -s fd/2 /root/dev/stderr
# At each start libfabric's verbs provider reads all of it, for the name of a function that shares GPU memory. That
# takes half of a program's start-up time in this guest.
mount -o bind /root/dev/null /root/proc/kallsyms
mkdir -p /root/dev/pts /root/dev/shm /root/dev/hugepages
mount -t devpts -o mode=620,ptmxmode=666 devpts /root/dev/pts
mount -t tmpfs -o mode=1777 shm /root/dev/shm
mount -t hugetlbfs huge /root/dev/hugepages
mount -t tmpfs -o mode=755 run /root/run
mkdir -p /root/run/lock
cp -r /guest /root/run/guest
cp /bin/busybox /root/run/guest/busybox
mkdir /root/run/guest/out
mount_host out /root/run/guest/out rw,cache=none

exec switch_root /root /bin/bash /run/guest/run.sh

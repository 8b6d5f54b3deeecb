# SPDX-License-Identifier: MIT
# Shared by the scripts of the test machine: exit statuses, messages, the cache, packages that are unpacked and never installed.
# Sourced, not run.

VM_EXIT_USAGE=119    # a wrong option, or a machine this cannot work on
VM_EXIT_MISSING=120  # a program is not installed
VM_EXIT_DOWNLOAD=121 # a package could not be downloaded
VM_EXIT_BUILD=122    # initramfs or siw module could not be built
VM_EXIT_DIED=123     # the guest ended without a result
VM_EXIT_TIMEOUT=124  # the guest ran past --timeout
VM_EXIT_DEVICE=125   # the guest could not set up the RDMA device

# Programs such as ip and modprobe are in sbin, which the PATH of an ordinary user leaves out.
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

vm_name=${0##*/tests/}
vm_cache=${NDVERBS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ndverbs}

vm_say()
{
    echo "$vm_name: $*" >&2
}

# vm_die STATUS MESSAGE...: one line, then the end.
vm_die()
{
    local status=$1
    shift
    vm_say "$@"
    exit "$status"
}

# vm_need PROGRAM:PACKAGE...: all that is missing in one line, with the line that installs it.
vm_need()
{
    local pair programs='' packages=''
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null && continue
        programs+=" ${pair%%:*}"
        [[ " $packages " == *" ${pair#*:} "* ]] || packages+=" ${pair#*:}"
    done
    [ -z "$programs" ] || vm_die $VM_EXIT_MISSING "missing:$programs; install with: apt-get install$packages"
}

# vm_quote TEXT: TEXT as one word for any POSIX shell (busybox reads it in the guest, so not bash's printf %q).
vm_quote()
{
    printf "'%s'" "${1//\'/\'\\\'\'}"
}

# vm_lock NAME: until the calling process (or subshell) ends, nobody else changes that part of the cache.
vm_lock()
{
    mkdir -p "$vm_cache" || vm_die $VM_EXIT_USAGE "cannot create the cache $vm_cache: set NDVERBS_CACHE"
    exec 9>"$vm_cache/.lock-$1"
    flock 9
}

# vm_depends PACKAGE PATTERN: the packages it depends on whose names match, as the package lists say.
vm_depends()
{
    apt-cache depends --no-recommends --no-suggests "$1" 2>/dev/null |
        sed -n 's/^ *|\{0,1\}Depends: *//p' | grep -E "^($2)\$" || true
}

# vm_apt_update: refresh the package lists when we may.
vm_apt_update()
{
    if [ "$(id -u)" = 0 ]; then
        apt-get -qq update
    elif command -v sudo >/dev/null; then
        sudo -n apt-get -qq update
    else
        return 1
    fi
}

# vm_deb_name PACKAGE: file name of its package file (name, version, architecture); empty when the lists do not know it.
vm_deb_name()
{
    apt-get download --print-uris "$1" 2>/dev/null | sed -n "s/^'[^']*' \([^ ]*\).*/\1/p" | head -n 1
}

# vm_fetch DIR PACKAGE...: download and unpack each below DIR. Lists that are too old name files that are gone: refresh once.
vm_fetch()
{
    local dir=$1 package tmp log
    shift
    tmp=$dir.deb log=$vm_cache/download.log
    mkdir -p "$dir" "$tmp"
    for package in "$@"; do
        vm_say "downloading $package"
        if ! (cd "$tmp" && apt-get -q download "$package") >"$log" 2>&1; then
            { vm_apt_update && (cd "$tmp" && apt-get -q download "$package"); } >>"$log" 2>&1 ||
                vm_die $VM_EXIT_DOWNLOAD "cannot download $package ($(sed -n 's/^[EW]: *//p' "$log" | tail -n 1));" \
                    "check the network and 'apt-get update', then run it again"
        fi
        dpkg-deb -x "$tmp"/*.deb "$dir" ||
            vm_die $VM_EXIT_DOWNLOAD "cannot unpack $package into $dir (disc full?)"
        rm -f "$tmp"/*.deb
    done
    rmdir "$tmp"
}

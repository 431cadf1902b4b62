"""Attacks on the kernel: system calls that lead out of a sandbox, and the network. All must fail."""

# ruff: noqa: F821, SIM105, SIM115 (a submission defines names, and does not mind)

from .attack import MARK, PORT, breach, cell

SYSTEM = '''
import ctypes
import os
import platform

libc = ctypes.CDLL(None, use_errno=True)


def succeeds(number, *arguments):
    """Whether a system call does, by its number on x86-64 and on arm64."""
    number = number[platform.machine() == "aarch64"]
    wide = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments]
    return libc.syscall(ctypes.c_long(number), *wide) >= 0
'''


@cell(before=SYSTEM)
def makes_namespaces():
    """unshare, setns and clone3 into new user, mount, network and process namespaces."""
    for flag in (0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x08000000, 0x04000000, 0x02000000, 0x80):
        if succeeds((272, 97), flag):
            breach(f"unshare {flag:#x}")
        if succeeds((272, 97), flag | 0x10000000):
            breach(f"unshare {flag:#x} with a user namespace")
        arguments = ctypes.create_string_buffer(88)
        ctypes.c_uint64.from_buffer(arguments).value = flag | 0x10000000
        if succeeds((435, 435), arguments, 88):
            breach(f"clone3 {flag:#x}")
    for name in os.listdir("/proc/1/ns") if os.access("/proc/1/ns", os.R_OK) else []:
        try:
            descriptor = os.open(f"/proc/1/ns/{name}", os.O_RDONLY)
        except OSError:
            continue
        if succeeds((308, 268), descriptor, 0):
            breach(f"setns {name}")


@cell(before=SYSTEM)
def mounts():
    """mount, umount, pivot_root, chroot, and the newer calls that mount."""
    tries = {
        "mount a tmpfs": ((165, 40), b"none", b"/tmp", b"tmpfs", 0, None),
        "mount proc": ((165, 40), b"none", b"/tmp", b"proc", 0, None),
        "remount the root": ((165, 40), b"none", b"/", None, 0x1020, None),
        "umount": ((166, 39), b"/tmp", 2),
        "umount proc": ((166, 39), b"/proc", 2),
        "pivot_root": ((155, 41), b"/tmp", b"/tmp"),
        "chroot": ((161, 51), b"/tmp"),
        "fsopen": ((430, 430), b"tmpfs", 0),
        "open_tree": ((428, 428), -100 & (2**64 - 1), b"/", 1),
        "mount_setattr": ((442, 442), -100 & (2**64 - 1), b"/", 0, bytes(32), 32),
    }
    for name, arguments in tries.items():
        if succeeds(*arguments):
            breach(name)


@cell(before=SYSTEM, stock=True)
def rare_calls():
    """Calls behind which the kernel's mistakes were found: keys, BPF, io_uring, userfaultfd, performance counters."""
    tries = {
        "keyctl": ((250, 219), 0, -3 & (2**64 - 1), 1),
        "add_key": ((248, 217), b"user", b"a", b"b", 1, -4 & (2**64 - 1)),
        "request_key": ((249, 218), b"user", b"a", None, -4 & (2**64 - 1)),
        "bpf": ((321, 280), 0, bytes(72), 72),
        "io_uring_setup": ((425, 425), 8, ctypes.create_string_buffer(120)),
        "userfaultfd": ((323, 282), 1),
        "perf_event_open": ((298, 241), b"\x01\0\0\0\x70\0\0\0" + bytes(104), 0, -1 & (2**64 - 1), -1 & (2**64 - 1), 0),
        "memfd_secret": ((447, 447), 0),
        "syslog": ((103, 116), 3, ctypes.create_string_buffer(4096), 4096),
        "personality": ((135, 92), 0x0040000),
        "kcmp": ((312, 272), 1, 1, 0, 0, 0),
        "init_module": ((175, 105), b"x", 1, b""),
        "kexec_load": ((246, 104), 0, 0, None, 0),
        "swapon": ((167, 224), b"/tmp/x", 0),
        "sethostname": ((170, 161), b"x", 1),
        "settimeofday": ((164, 170), bytes(16), None),
        "iopl": ((172, 1_000_000), 3),
        "fanotify_init": ((300, 262), 0, 0),
        "quotactl": ((179, 60), 0x800001 << 8, b"/dev/vda", 0, bytes(128)),
        "reboot": ((169, 142), 0xFEE1DEAD, 672274793, 0x89ABCDEF, None),
        "mknod": ((133, 1_000_000), b"/tmp/vda", 0o60666, 0xFE00),
        "mknodat": ((259, 33), -100 & (2**64 - 1), b"/tmp/vda2", 0o60666, 0xFE00),
        "setuid": ((105, 146), 0),
        "setresgid": ((119, 149), 0, 0, 0),
        "setgroups": ((116, 159), 1, bytes(4)),
        "shmget": ((29, 194), 0, 4096, 0o1666),
        "msgget": ((68, 186), 0, 0o1666),
        "semget": ((64, 190), 0, 1, 0o1666),
        "mq_open": ((240, 180), b"left", os.O_CREAT | os.O_RDWR, 0o666, None),
    }
    for name, arguments in tries.items():
        if succeeds(*arguments):
            print(name, "succeeded")
            breach(name)


@cell(before=SYSTEM)
def gains_privileges():
    """Programs of another user's rights, and capabilities that may be left."""
    import glob
    import subprocess

    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        if int(status[name], 16):
            breach(f"{name} is {status[name].strip()}")
    if status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2":
        breach("system calls are not filtered")
    if os.getuid() == 0 or os.getgid() == 0 or os.getgroups() not in ([], [os.getgid()]):
        breach(f"this is {os.getuid()}, {os.getgid()}, {os.getgroups()}")
    for program in glob.glob("/usr/bin/su") + glob.glob("/usr/bin/newgrp") + glob.glob("/usr/bin/sudo"):
        if b"uid=0" in subprocess.run([program, "-c", "id"], input=b"\n", capture_output=True).stdout:
            breach(program)


@cell(before=SYSTEM)
def other_architectures():
    """System calls in the forms of 32-bit programs and of x32, whose numbers a filter may not know."""
    import os

    if (
        os.uname().machine == "x86_64"
        and libc.syscall(ctypes.c_long(0x40000000 + 272), ctypes.c_ulong(0x10000000)) >= 0
    ):
        breach("unshare, of x32")


@cell()
def connects():
    """The test listens: on the loopback, on every address of the machine, and on Unix sockets."""
    import os
    import socket

    hosts = ["127.0.0.1", "localhost", "::1", "0.0.0.0", "10.0.2.2", "172.17.0.1", "169.254.169.254", "1.1.1.1"]
    for host in hosts:
        try:
            socket.create_connection((host, PORT), timeout=0.2).send(MARK.encode())
            breach(f"{host} was reached")
        except OSError:
            pass
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            socket.socket(family, socket.SOCK_DGRAM).sendto(MARK.encode(), (host, PORT))
        except OSError:
            pass
    for place in (f"\0{MARK}", "/run/dbus/system_bus_socket", "/var/run/docker.sock", "/run/docker.sock"):
        try:
            socket.socket(socket.AF_UNIX).connect(place)
            breach(f"{place!r} was reached")
        except OSError:
            pass
    try:
        breach(f"a name was looked up: {socket.getaddrinfo('example.org', 80)}")
    except OSError:
        pass
    if (names := os.listdir("/sys/class/net") if os.path.exists("/sys/class/net") else []) not in ([], ["lo"]):
        breach(f"there are {names}")
    for family, kind in (
        (socket.AF_PACKET, socket.SOCK_RAW),
        (socket.AF_INET, socket.SOCK_RAW),
        (socket.AF_NETLINK, 3),
    ):
        try:
            socket.socket(family, kind)
            breach(f"a socket of family {family} and kind {kind}")
        except OSError:
            pass
    if os.path.exists("/etc/resolv.conf"):
        print(open("/etc/resolv.conf").read())

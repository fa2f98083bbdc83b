"""A kind of job for tests: whatever a job should not do."""

import fcntl
import math
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading


def perform(parameters, tell):
    tell({"event": "pid", "pid": os.getpid()})
    return globals()[parameters["how"]](tell)


def wait(tell):
    threading.Event().wait()


def loop(tell):
    """Inside C code that neither lets another thread run nor returns in a lifetime."""
    re.match(r"(a+)+$", "a" * 64 + "b")


def environment(tell):
    return dict(os.environ)


def ignore(tell):
    """Deaf to SIGTERM, with a child that is deaf as well."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    deaf = "import signal, threading; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); "
    deaf += "threading.Event().wait()"
    child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
    child.stdout.readline()
    tell({"event": "deaf", "pid": child.pid})
    threading.Event().wait()


def save(tell):
    """What a training does: told to stop, it saves and leaves."""
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    tell({"event": "armed"})
    while not asked.wait(0.05):
        pass
    tell({"event": "saved"})
    raise SystemExit(143)


def eat(tell):
    """Memory that is asked for until allocating fails."""
    kept = []
    while True:
        kept.append(bytearray(1 << 24))


def swell(tell):
    """The same where nothing but the watch forbids it."""
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    kept = [b"x" * (1 << 26) for _ in range(8)]
    threading.Event().wait(len(kept) * 100)


def burn(tell):
    """More processor time than was granted, where no clock on the wall stops it."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(sum(os.times()[:2])) + 1, resource.RLIM_INFINITY))
    while True:
        pass


def kill(tell):
    os.kill(os.getpid(), signal.SIGKILL)


def abort(tell):
    os.abort()


def segfault(tell):
    os.kill(os.getpid(), signal.SIGSEGV)


def realtime(tell):
    """A signal for which Python has no name."""
    os.kill(os.getpid(), 40)


def leave(tell):
    os._exit(3)


def channel():
    """The descriptor on which answers travel: the last pipe that was opened for writing."""
    writing = [fd for fd in range(3, 64) if fcntl_flags(fd) & os.O_ACCMODE == os.O_WRONLY]
    return max(fd for fd in writing if stat.S_ISFIFO(os.fstat(fd).st_mode))


def fcntl_flags(fd):
    try:
        return fcntl.fcntl(fd, fcntl.F_GETFL)
    except OSError:
        return 0


def garbage(tell):
    os.write(channel(), b"\xff{]\n")
    threading.Event().wait()


def number(tell):
    """JSON, and yet no message."""
    os.write(channel(), b'{"result": 7}\n')
    threading.Event().wait()


def nested(tell):
    os.write(channel(), b"[" * 100_000 + b"\n")
    threading.Event().wait()


def close(tell):
    os.close(channel())
    threading.Event().wait()


def fork(tell):
    """Forks; the copy comes back from here, too."""
    if os.fork() == 0:
        return {"copy": True}
    os.wait()
    return {"copy": False}


def twice(tell):
    """Answers twice: a copy takes the voice of its parent, which answers when the copy has done so."""
    end, begun = os.pipe()
    if os.fork() == 0:
        voice = next(cell.cell_contents for cell in tell.__closure__)
        voice.process = os.getpid()
        voice.say({"result": {"copy": True}})
        os.write(begun, b"1")
        threading.Event().wait()
    os.read(end, 1)
    return {"copy": False}


def orphan(tell):
    """Dies and leaves a process behind that is no longer of its group and holds every pipe."""
    end, begun = os.pipe()
    left = os.fork()
    if not left:
        os.setsid()
        os.write(begun, b"1")
        threading.Event().wait()
    os.read(end, 1)
    tell({"event": "left", "pid": left})
    os.kill(os.getpid(), 40)


def fail(tell):
    raise ValueError("first line\nsecond line \ud800" + "x" * 1000)


def nan(tell):
    return {"values": [math.nan, (math.inf, -math.inf)]}


def shout(tell):
    return {"text": "x" * (9 << 20)}


def babble(tell):
    """Not JSON at all: an object that cannot be written, as a tensor cannot."""
    return {"object": object()}

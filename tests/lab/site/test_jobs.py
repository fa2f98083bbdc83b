"""Jobs: bounded, told as they go, and ended whatever they do."""

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import sys

import pytest

from lemmata.lab.site.job import MOST_EVENTS, Job, JobFailed, JobsFull, JobTimeout, UnknownJob
from lemmata.lab.site.jobs import Jobs
from lemmata.lab.site.limits import Limits
from lemmata.workers import threads

PROMISED = 3.0  # seconds from cancel to gone
SLACK = 12.0  # for a machine that does ten other things


@pytest.fixture
def work(kinds):
    """Run a scenario with fresh jobs, whose children import nothing heavy."""

    def run(scenario, **settings):
        async def main():
            jobs = Jobs(**{"warm": (), "folders": [kinds], **settings})
            jobs.open()
            try:
                async with asyncio.timeout(60):
                    return await scenario(jobs)
            finally:
                await jobs.close()
                assert not jobs.children

        return asyncio.run(main())

    return run


async def told(job, event):
    """The first event of this name, once it is there."""
    async for found in job.follow():
        if found["event"] == event:
            return found
    raise AssertionError(f"{job.state}: {job.message}")


async def ended(job):
    await job.over.wait()
    return job.state, job.message


def naughty(jobs, how, **rest):
    return jobs.start("naughty", {"how": how}, **rest)


def test_a_slider_computes_where_the_judge_does(work, monkeypatch):
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")  # without its assertions code is other code

    async def scenario(jobs):
        return await jobs.call("naughty", {"how": "environment"})

    found = work(scenario)
    assert {name: found[name] for name in threads(1)} == threads(1)


def test_a_job_tells_events_with_ids_and_ends_with_its_result(work):
    async def scenario(jobs):
        job = jobs.start("echo", {"events": 3})
        followed = [event async for event in job.follow()]
        assert (job.state, job.result["echo"]) == ("done", {"events": 3})
        assert [event["id"] for event in followed] == [1, 2, 3, 4, 5]
        assert [event["event"] for event in followed] == ["running", *["progress"] * 3, "done"]
        assert followed[-1]["result"] == job.result
        assert [event["id"] async for event in job.follow(after=3)] == [4, 5]
        assert [event async for event in job.follow(after=99)] == []
        assert jobs.get(job.id) is job

    work(scenario)


def test_a_call_is_answered_while_all_jobs_run(work):
    async def scenario(jobs):
        running = [naughty(jobs, "wait") for _ in range(2)]
        for job in running:
            await told(job, "pid")
        third = jobs.start("echo", {})
        assert (await jobs.call("echo", {"quick": 1}, seconds=30))["echo"] == {"quick": 1}
        assert third.state == "queued"

    work(scenario)


def test_two_run_eight_wait_and_the_next_is_refused(work):
    async def scenario(jobs):
        running = [naughty(jobs, "wait") for _ in range(2)]
        for job in running:
            await told(job, "pid")
        waiting = [jobs.start("echo", {}) for _ in range(8)]
        with pytest.raises(JobsFull, match="8 jobs are waiting"):
            jobs.start("echo", {})
        with pytest.raises(JobsFull):
            await jobs.call("echo", {})
        assert [job.state for job in running + waiting] == ["running"] * 2 + ["queued"] * 8
        await jobs.cancel(waiting[0].id)
        assert waiting[0].state == "cancelled"
        await jobs.cancel(running[0].id)
        assert {await ended(job) for job in waiting[1:]} == {("done", "")}
        assert running[1].state == "running"

    work(scenario)


def test_a_call_goes_before_jobs_that_wait(work):
    async def scenario(jobs):
        first = naughty(jobs, "wait")
        await told(first, "pid")
        waiting = jobs.start("echo", {})
        call = asyncio.create_task(jobs.call("echo", {"quick": True}))
        await asyncio.wait([call], timeout=0.05)  # it is in line now, behind the other
        await jobs.cancel(first.id)
        assert (await call)["echo"] == {"quick": True}
        assert await ended(waiting) == ("done", "")
        assert waiting.result["pid"] == (await jobs.call("echo", {}))["pid"]  # the same warm child does it all

    work(scenario, running=1)


@pytest.mark.parametrize("how", ["wait", "loop", "ignore"])
def test_a_cancelled_job_is_gone_with_its_children_and_the_other_lives(work, gone, how):
    async def scenario(jobs):
        other, job = naughty(jobs, "wait"), naughty(jobs, how)
        pids = [(await told(job, "pid"))["pid"]]
        if how == "ignore":
            pids.append((await told(job, "deaf"))["pid"])
        await told(other, "pid")
        await asyncio.wait_for(jobs.cancel(job.id), PROMISED + SLACK)
        assert (job.state, other.state) == ("cancelled", "running")
        assert all(map(gone, pids))
        assert (await jobs.call("echo", {}))["pid"] not in pids

    work(scenario)


def test_a_job_that_is_told_to_stop_may_save_and_its_news_is_heard(work):
    async def scenario(jobs):
        job = naughty(jobs, "save")
        await told(job, "armed")
        await jobs.cancel(job.id)
        assert [event["event"] for event in job.events][-2:] == ["saved", "cancelled"]

    work(scenario)


def test_a_job_that_hangs_is_stopped_and_says_so(work):
    async def scenario(jobs):
        other = naughty(jobs, "wait")
        job = naughty(jobs, "loop", seconds=0.5)
        assert await ended(job) == ("failed", "stopped after 0.5 s")
        assert other.state == "running"
        assert (await jobs.call("echo", {}))["echo"] == {}

    work(scenario)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel bounds address space on Linux only")
@pytest.mark.parametrize("how", ["eat", "swell"])
def test_a_job_that_eats_memory_is_stopped_and_the_other_lives(work, how):
    async def scenario(jobs):
        other = naughty(jobs, "wait")
        state, message = await ended(naughty(jobs, how))
        assert (state, message) == ("failed", "it needs more than the 0.25 GiB of memory that a job may use")
        assert (await jobs.call("echo", {}))["echo"] == {}
        assert other.state == "running"

    work(scenario, limits=Limits(memory=256 << 20))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("kill", "its process was killed, often for lack of memory"),
        ("abort", "its process ended by signal SIGABRT"),
        ("segfault", "its process ended by signal SIGSEGV"),
        ("realtime", "its process ended by signal 40"),
        ("garbage", "its process spoilt the pipe on which answers travel"),
        ("number", "its process spoilt the pipe on which answers travel"),
        ("nested", "its process spoilt the pipe on which answers travel"),
        ("close", "its process closed the pipe on which answers travel"),
        ("leave", "its process ended with exit code 3"),
        ("burn", "its process used up the processor time that a job may have"),
        ("shout", "its answer is longer than 8 MiB"),
        ("babble", "TypeError: Object of type object is not JSON serializable"),
    ],
)
def test_a_job_that_ends_its_own_process_is_reported_in_one_line_and_replaced(work, how, message):
    async def scenario(jobs):
        for _ in range(3):  # more often than there are children
            *_, last = [event async for event in naughty(jobs, how).follow()]
            assert (last["event"], last["message"]) == ("failed", message)
        after = jobs.start("echo", {})
        assert await ended(after) == ("done", "")

    work(scenario, running=1)


def test_a_death_harms_no_other_job(work):
    async def scenario(jobs):
        other = naughty(jobs, "wait")
        for how in ("kill", "realtime", "garbage"):
            assert (await ended(naughty(jobs, how)))[0] == "failed"
        assert (await jobs.call("echo", {}))["echo"] == {}
        assert other.state == "running"

    work(scenario)


def test_a_death_is_told_though_a_process_was_left_behind_that_holds_the_pipes(work):
    async def scenario(jobs):
        job = naughty(jobs, "orphan")
        left = (await told(job, "left"))["pid"]
        try:
            assert await ended(job) == ("failed", "its process ended by signal 40")
            assert await ended(jobs.start("echo", {})) == ("done", "")
        finally:
            os.kill(left, signal.SIGKILL)

    work(scenario, running=1)


def test_a_copy_of_a_process_has_no_say(work):
    async def scenario(jobs):
        for _ in range(3):
            job = naughty(jobs, "fork")
            assert await ended(job) == ("done", "")
            assert job.result == {"copy": False}

    work(scenario, running=1)


def test_a_second_answer_is_not_credited_to_the_next_job(work):
    async def scenario(jobs):
        for _ in range(3):
            job, following = naughty(jobs, "twice"), [jobs.start("echo", {"number": k}) for k in range(3)]
            assert await ended(job) == ("done", "")
            for k, after in enumerate(following):
                assert await ended(after) == ("done", "")
                assert after.result["echo"] == {"number": k}

    work(scenario, running=1)


def test_an_error_is_one_short_line_and_numbers_that_json_lacks_are_words(work):
    async def scenario(jobs):
        _, message = await ended(naughty(jobs, "fail"))
        assert message.startswith("ValueError: first line second line ?xxx")
        assert len(message) == 300
        job = naughty(jobs, "nan")
        await ended(job)
        assert job.result == {"values": ["nan", ["inf", "-inf"]]}

    work(scenario)


def test_a_call_has_a_deadline_and_an_error_of_its_own(work, gone):
    async def scenario(jobs):
        pid = (await jobs.call("echo", {}))["pid"]
        with pytest.raises(JobTimeout, match=r"no answer within 0\.3 s"):
            await jobs.call("naughty", {"how": "loop"}, seconds=0.3)
        with pytest.raises(JobFailed, match="ValueError: first line"):
            await jobs.call("naughty", {"how": "fail"})
        assert (await jobs.call("echo", {}))["pid"] != pid
        assert gone(pid)

    work(scenario, running=1)


def test_nobody_waits_for_an_abandoned_call(work):
    async def scenario(jobs):
        call = asyncio.create_task(jobs.call("naughty", {"how": "wait"}))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([call], timeout=0.5)
            call.cancel()
            await call
        assert (await jobs.call("echo", {}))["echo"] == {}

    work(scenario, running=1)


def test_jobs_that_ended_long_ago_are_forgotten(work):
    async def scenario(jobs):
        done = [jobs.start("echo", {}) for _ in range(5)]
        for job in done:
            await ended(job)
        known = [jobs.get(job.id) is job for job in done]
        assert known.count(True) == 3
        with pytest.raises(UnknownJob):
            jobs.cancel(done[known.index(False)].id)
        kept = done[known.index(True)]
        await jobs.cancel(kept.id)
        assert kept.state == "done"

    work(scenario, kept=3)


def test_a_child_that_cannot_start_fails_each_job_with_the_reason(work):
    async def scenario(jobs):
        for _ in range(3):
            state, message = await ended(jobs.start("echo", {}))
            assert (state, message) == (
                "failed",
                "a child process cannot start: ModuleNotFoundError: No module named 'no_such_module'",
            )

    work(scenario, warm=["no_such_module"])


def test_closing_ends_jobs_and_those_who_follow_them(work):
    async def scenario(jobs):
        running = naughty(jobs, "ignore")
        await told(running, "deaf")
        queued = naughty(jobs, "wait")
        follower = asyncio.create_task(told(queued, "cancelled"))
        await asyncio.wait_for(jobs.close(), PROMISED + SLACK)
        assert (await follower)["message"] == running.message == "the lab is closing"
        with pytest.raises(JobFailed, match="closing"):
            jobs.start("echo", {})

    work(scenario, running=1)


def test_events_are_bounded_in_number_and_in_bytes(work):
    job = Job("echo", {}, 1.0)
    for _ in range(MOST_EVENTS + 10):
        job.tell({"event": "progress"})
    assert [job.events[0]["id"], len(job.events)] == [11, MOST_EVENTS]

    async def scenario(jobs):
        job = jobs.start("echo", {"events": 30, "padding": 1 << 20})
        assert [event["id"] async for event in job.follow()][-1] == 32
        assert 10 < len(job.events) < 20

    work(scenario)


def test_only_known_kinds_are_taken_and_numbers_make_sense(work, kinds):
    async def scenario(jobs):
        with pytest.raises(ValueError, match=r"kind must be one of .*echo.*; got 'os'"):
            jobs.start("os", {})

    work(scenario)
    for wrong in ({"running": 0}, {"waiting": 0}, {"kept": -1}):
        with pytest.raises(ValueError, match="must be >= 1"):
            Jobs(**wrong)
    for wrong in ({"seconds": 0.0}, {"seconds": float("nan")}, {"memory": 5}):
        with pytest.raises(ValueError, match="must be"):
            Limits(**wrong)


SERVER = """
import asyncio, sys
from lemmata.lab.site.jobs import Jobs

async def main():
    jobs = Jobs(warm=(), folders=[sys.argv[1]])
    jobs.open()
    for how in ("loop", "wait"):
        job = jobs.start("naughty", {"how": how})
        async for event in job.follow():
            if event["event"] == "pid":
                print(event["pid"], flush=True)
                break
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a child in a loop of C code ends with its time limit")
def test_children_die_with_the_server_however_it_dies(kinds, gone):
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(kinds)], stdout=subprocess.PIPE)
    with server:
        children = [int(server.stdout.readline()) for _ in range(2)]
        assert not any(map(functools.partial(gone, seconds=0), children))
        os.kill(server.pid, signal.SIGKILL)
        assert all(map(gone, children))

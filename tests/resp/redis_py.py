"""Every command of `kvdyno serve` with redis-py, as its users would. Arguments: port, and a second port to shut down."""

import sys
import time

import redis

called = set()


class Noting(redis.Connection):
    """A connection that records the commands it sends."""

    def pack_commands(self, commands):
        commands = list(commands)
        for command in commands:
            called.add(str(command[0]).split()[0].upper())
        return super().pack_commands(commands)

    def send_command(self, *args, **kwargs):
        called.add(str(args[0]).split()[0].upper())
        return super().send_command(*args, **kwargs)


def connect(port, **more):
    pool = redis.ConnectionPool(connection_class=Noting, host="127.0.0.1", port=port, **more)
    return redis.Redis(connection_pool=pool)


def expect(got, wanted):
    assert got == wanted, f"got {got!r}, wanted {wanted!r}"


def refused(call, words):
    try:
        answer = call()
    except redis.ResponseError as error:
        assert words in str(error), f"{words!r} is not in {error!r}"
        return
    raise AssertionError(f"no error but {answer!r}, wanted {words!r}")


def connection(r):
    expect(r.ping(), True)
    expect(r.echo("hello"), b"hello")
    expect(r.execute_command("HELLO", "2")[1], b"redis")
    refused(lambda: r.execute_command("AUTH", "secret"), "without any password")
    expect(r.client_setname("first"), True)
    expect(r.client_getname(), "first")
    own = r.client_id()
    expect([client["id"] for client in r.client_list() if client["name"] == "first"], [str(own)])
    other = connect(r.connection_pool.connection_kwargs["port"])
    expect(r.client_kill_filter(_id=other.client_id()), 1)
    expect(r.execute_command("RESET") in ("RESET", b"RESET"), True)
    expect(r.execute_command("SELECT", 3), True)
    expect(r.execute_command("SELECT", 0), True)
    refused(lambda: r.execute_command("SELECT", 99), "DB index is out of range")
    one = connect(r.connection_pool.connection_kwargs["port"]).client()
    expect(one.execute_command("QUIT") in (True, b"OK"), True)
    refused(lambda: r.execute_command("NOSUCH", "x"), "unknown command")


def strings(r):
    expect(r.set("s", "1"), True)
    expect(r.get("s"), b"1")
    expect(r.set("s", "2", nx=True), None)
    expect(r.set("none", "2", xx=True), None)
    expect(r.set("s", "2", get=True), b"1")
    expect(r.set("e", "x", ex=100), True)
    assert 95 <= r.ttl("e") <= 100
    expect(r.set("e", "x", px=100_000, xx=True), True)
    expect(r.set("e", "y", keepttl=True), True)
    assert 95_000 <= r.pttl("e") <= 100_000
    expect(r.setnx("s", "3"), False)
    expect(r.setex("e", 100, "x"), True)
    expect(r.psetex("e", 100_000, "x"), True)
    expect(r.getset("s", "9"), b"2")
    expect(r.getdel("e"), b"x")
    expect(r.mset({"a": "1", "b": "2"}), True)
    expect(r.mget("a", "none", "b"), [b"1", None, b"2"])
    expect(r.msetnx({"a": "5", "c": "5"}), False)
    expect(r.incr("n"), 1)
    expect(r.decr("n"), 0)
    expect(r.incrby("n", 40), 40)
    expect(r.decrby("n", 50), -10)
    refused(lambda: r.execute_command("INCR", "binary"), "not an integer") if r.set("binary", b"\0\xff\r\n") else None
    expect(r.get("binary"), b"\0\xff\r\n")
    expect(r.append("s", "99"), 3)
    expect(r.strlen("s"), 3)
    expect(r.execute_command("DECR", "n"), -11)  # decr() sends DECRBY
    expect(r.incrbyfloat("x", 0.1), 0.1)
    expect(r.incrbyfloat("x", 0.2), 0.3)
    expect(r.setrange("range", 2, "text"), 6)
    expect(r.getrange("range", 1, -2), b"\0tex")
    expect(r.execute_command("SUBSTR", "range", 2, 3), b"te")
    expect(r.execute_command("GETEX", "range", "EX", 100), b"\0\0text")
    assert 95 <= r.ttl("range") <= 100


def keys(r):
    expect(r.exists("a", "b", "none", "a"), 3)
    expect(r.type("a"), b"string")
    now = int(time.time())
    for call in [
        lambda: r.expire("a", 100),
        lambda: r.pexpire("a", 100_000),
        lambda: r.expireat("a", now + 100),
        lambda: r.pexpireat("a", (now + 100) * 1000),
    ]:
        expect(call(), True)
        assert 95 <= r.ttl("a") <= 100
        assert 95_000 <= r.pttl("a") <= 100_000
    expect(r.execute_command("EXPIRETIME", "a"), now + 100)
    expect(r.execute_command("PEXPIRETIME", "a"), (now + 100) * 1000)
    expect(r.persist("a"), True)
    expect(r.ttl("a"), -1)
    expect(r.ttl("none"), -2)
    expect(r.set("gone", "x", px=1), True)
    time.sleep(0.05)
    expect(r.get("gone"), None)
    expect(r.touch("a", "none"), 1)
    expect(r.rename("a", "moved"), True)
    expect(r.renamenx("moved", "b"), False)
    expect(bool(r.execute_command("COPY", "moved", "a")), True)
    refused(lambda: r.rename("none", "a"), "no such key")
    expect(r.delete("a", "none"), 1)
    expect(r.unlink("b"), 1)
    assert r.randomkey() is not None
    for number in range(50):
        r.set(f"scan:{number:02}", number)
    expect(sorted(r.scan_iter("scan:*", count=7)), [b"scan:%02d" % n for n in range(50)])
    expect(len(r.keys("scan:1?")), 10)
    expect(r.execute_command("KEYS", "scan:*", "LIMIT", 2, "WITHVALUES"), [b"scan:00", b"0", b"scan:01", b"1"])
    expect(r.execute_command("RANGE", "scan:10", "scan:20", "LIMIT", 1), [b"scan:10"])
    assert r.dbsize() > 50


def hashes(r):
    expect(r.hset("h", mapping={"f": "1", "g": "2"}), 2)
    expect(r.execute_command("HMSET", "h", "f", "1"), True)
    expect(r.hsetnx("h", "f", "9"), 0)
    expect(r.hget("h", "f"), b"1")
    expect(r.hmget("h", "f", "none"), [b"1", None])
    expect(r.hincrby("h", "f", 41), 42)
    expect(r.hexists("h", "g"), True)
    expect(r.hlen("h"), 2)
    expect(r.hstrlen("h", "f"), 2)
    expect(r.hincrbyfloat("h", "x", 1.5), 1.5)
    expect(r.hdel("h", "x"), 1)
    expect(r.hscan("h", count=1)[1], {b"f": b"42"})
    expect(dict(r.hscan_iter("h", count=1)), {b"f": b"42", b"g": b"2"})
    expect(r.hgetall("h"), {b"f": b"42", b"g": b"2"})
    expect(sorted(r.hkeys("h")), [b"f", b"g"])
    expect(sorted(r.hvals("h")), [b"2", b"42"])
    expect(r.hdel("h", "f", "none"), 1)
    refused(lambda: r.get("h"), "WRONGTYPE")


def sets(r):
    expect(r.sadd("t", "x", "y", "z"), 3)
    expect(r.srem("t", "z", "none"), 1)
    expect(bool(r.sismember("t", "x")), True)
    expect(r.smembers("t"), {b"x", b"y"})
    expect(r.scard("t"), 2)
    expect([bool(n) for n in r.execute_command("SMISMEMBER", "t", "x", "none")], [True, False])
    expect(set(r.sscan_iter("t", count=1)), {b"x", b"y"})
    r.sadd("u", "y", "w")
    expect(r.sinter("t", "u"), {b"y"})
    expect(r.sunion("t", "u"), {b"w", b"x", b"y"})
    expect(r.sdiff("t", "u"), {b"x"})
    expect(r.sinterstore("combined", "t", "u"), 1)
    expect(r.sdiffstore("combined", "t", "u"), 1)
    expect(r.sunionstore("combined", "t", "u"), 3)
    expect(r.execute_command("SINTERCARD", 2, "t", "u"), 1)
    expect(bool(r.smove("combined", "u", "x")), True)
    assert r.spop("t") in {b"x", b"y"}


def sorted_sets(r):
    expect(r.zadd("z", {"one": 1, "two": 2, "three": 3.5}), 3)
    expect(r.zadd("z", {"one": 1, "four": 4}, nx=True), 1)
    expect(r.zadd("z", {"one": 2}, xx=True, ch=True), 1)
    expect(r.zadd("z", {"one": 5}, incr=True), 7.0)
    expect(r.zincrby("z", 0.5, "one"), 7.5)
    expect(r.zscore("z", "three"), 3.5)
    expect(r.zscore("z", "none"), None)
    expect(r.zcard("z"), 4)
    expect([float(score or 0) for score in r.execute_command("ZMSCORE", "z", "three", "none")], [3.5, 0])
    expect(r.zcount("z", "(2", "+inf"), 3)
    expect(r.zrank("z", "two"), 0)
    expect(r.zrevrank("z", "two"), 3)
    expect(r.zrevrangebyscore("z", "+inf", 7), [b"one"])
    expect(sorted(r.zscan_iter("z", match="t*", count=1)), [(b"three", 3.5), (b"two", 2.0)])
    expect(r.zrange("z", 0, 1, withscores=True), [(b"two", 2.0), (b"three", 3.5)])
    expect(r.zrange("z", 0, 0, desc=True), [b"one"])
    expect(r.zrevrange("z", 0, 0), [b"one"])
    expect(r.zrangebyscore("z", "(2", "+inf", start=0, num=1), [b"three"])
    expect(r.zpopmin("z"), [(b"two", 2.0)])
    expect(r.zpopmax("z"), [(b"one", 7.5)])
    expect(r.zrem("z", "four", "none"), 1)


def lists(r):
    expect(r.rpush("l", "b", "c"), 2)
    expect(r.lpush("l", "a"), 3)
    expect(r.lpushx("none", "a"), 0)
    expect(r.rpushx("none", "a"), 0)
    expect(r.llen("l"), 3)
    expect(r.lrange("l", 0, -1), [b"a", b"b", b"c"])
    expect(r.lindex("l", -1), b"c")
    expect(r.lpop("l"), b"a")
    expect(r.rpop("l", 5), [b"c", b"b"])


def transactions(r):
    def move(pipe):
        value = int(pipe.get("from") or 0)
        pipe.multi()
        pipe.set("from", value - 1)
        pipe.incr("to")

    r.set("from", 10)
    expect(r.transaction(move, "from"), [True, 1])
    pipe = r.pipeline(transaction=True)
    pipe.watch("from")
    r.set("from", 0)
    pipe.multi()
    pipe.set("from", 5)
    try:
        pipe.execute()
        raise AssertionError("a watched key had changed")
    except redis.WatchError:
        pass
    expect(r.get("from"), b"0")
    one = r.client()
    expect(one.execute_command("MULTI") in (True, b"OK"), True)
    expect(one.execute_command("DISCARD") in (True, b"OK"), True)
    expect(one.execute_command("UNWATCH") in (True, b"OK"), True)
    plain = r.pipeline(transaction=False)
    for number in range(1000):
        plain.set(f"p{number}", number)
        plain.get(f"p{number}")
    answers = plain.execute()
    expect(answers[1::2], [b"%d" % number for number in range(1000)])


def server(r):
    assert r.info()["redis_version"]
    expect(r.config_get("maxclients").keys(), {"maxclients"})
    expect(r.config_set("maxmemory-samples", 5), True)
    refused(lambda: r.config_set("bogus", 5), "Unknown option")
    expect(r.execute_command("FUNCTION", "FLUSH") in (True, b"OK"), True)
    refused(lambda: r.execute_command("FLUSHALL", "bogus"), "syntax error")
    assert r.time()[0] > 1_600_000_000
    expect(r.save(), True)
    expect(r.bgsave(), True)
    with r.monitor() as monitor:
        r.set("watched", "by monitor")
        while "watched" not in monitor.next_command()["command"]:
            pass


def main():
    r = connect(int(sys.argv[1]), socket_timeout=30)
    r.flushall()
    for family in [connection, strings, keys, hashes, sets, sorted_sets, lists, transactions, server]:
        family(r)
    names = {name.decode().upper() for name in r.execute_command("COMMAND LIST")}
    r.flushdb()
    expect(r.dbsize(), 0)
    r.flushall()
    connect(int(sys.argv[2]), socket_timeout=30).shutdown()
    missing = names - called
    assert not missing, f"never called: {sorted(missing)}"
    print(f"redis-py {redis.__version__}: {len(names)} commands")


main()

// Command go-redis calls every command of `kvdyno serve` with go-redis, as its users would. Arguments: port, and a
// second port to shut down.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// noting is a hook that records the commands that are sent.
type noting struct {
	lock   sync.Mutex
	called map[string]bool
}

func (n *noting) note(command redis.Cmder) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.called[strings.ToUpper(strings.Fields(command.Name())[0])] = true
}

func (n *noting) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

func (n *noting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		n.note(command)
		return next(ctx, command)
	}
}

func (n *noting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, command := range commands {
			n.note(command)
		}
		return next(ctx, commands)
	}
}

var notes = &noting{called: map[string]bool{}}

func connect(port string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, ReadTimeout: time.Minute, MaxRetries: -1})
	client.AddHook(notes)
	return client
}

func fail(format string, words ...any) {
	panic(fmt.Sprintf(format, words...))
}

// expect fails unless the command returned `wanted`.
func expect[T any](got T, err error) func(wanted T) {
	return func(wanted T) {
		if err != nil {
			fail("%v, wanted %v", err, wanted)
		}
		if !reflect.DeepEqual(got, wanted) {
			fail("got %v, wanted %v", got, wanted)
		}
	}
}

func refused(command redis.Cmder, words string) {
	if command.Err() == nil || !strings.Contains(command.Err().Error(), words) {
		fail("%v: wanted an error with `%s`", command, words)
	}
}

func isNil(command redis.Cmder) {
	if !errors.Is(command.Err(), redis.Nil) {
		fail("%v: wanted nothing", command)
	}
}

func connection(r *redis.Client, port string) {
	expect(r.Ping(ctx).Result())("PONG")
	expect(r.Echo(ctx, "hello").Result())("hello")
	one := r.Conn()
	defer one.Close()
	if hello, err := one.Hello(ctx, 3, "", "", "").Result(); err != nil || hello["server"] != "redis" {
		fail("%v %v", hello, err)
	}
	notes.note(redis.NewCmd(ctx, "hello"))
	expect(one.ClientSetName(ctx, "first").Result())(true)
	expect(one.ClientGetName(ctx).Result())("first")
	id, err := one.ClientID(ctx).Result()
	if list := r.ClientList(ctx).Val(); err != nil || !strings.Contains(list, fmt.Sprintf("id=%d ", id)) {
		fail("%v is not in %s", id, list)
	}
	expect(r.ClientKillByFilter(ctx, "ID", fmt.Sprint(id)).Result())(1)
	refused(r.Do(ctx, "AUTH", "secret"), "without any password")
	other := connect(port).Conn()
	expect(other.Select(ctx, 3).Result())("OK")
	notes.note(redis.NewCmd(ctx, "select"))
	other.Close()
	refused(r.Do(ctx, "SELECT", 99), "DB index is out of range")
	refused(r.Do(ctx, "NOSUCH", "x"), "unknown command")
	last := connect(port)
	expect(last.Do(ctx, "RESET").Text())("RESET")
	last.Close()
	last = connect(port)
	expect(last.Do(ctx, "QUIT").Text())("OK")
	last.Close()
}

func stringCommands(r *redis.Client) {
	expect(r.Set(ctx, "s", "1", 0).Result())("OK")
	expect(r.Get(ctx, "s").Result())("1")
	isNil(r.Get(ctx, "none"))
	expect(r.SetNX(ctx, "s", "2", 0).Result())(false)
	expect(r.Do(ctx, "SETNX", "s", "2").Int())(0)
	expect(r.SetXX(ctx, "none", "2", 0).Result())(false)
	expect(r.SetArgs(ctx, "s", "2", redis.SetArgs{Get: true}).Result())("1")
	expect(r.Set(ctx, "e", "x", 100*time.Second).Result())("OK")
	expect(r.Set(ctx, "e", "y", redis.KeepTTL).Result())("OK")
	expect(r.SetEx(ctx, "e", "x", 100*time.Second).Result())("OK")
	expect(r.Do(ctx, "PSETEX", "e", 100000, "x").Text())("OK")
	expect(r.GetSet(ctx, "s", "9").Result())("2")
	expect(r.GetDel(ctx, "e").Result())("x")
	expect(r.MSet(ctx, "a", "1", "b", "2").Result())("OK")
	expect(r.MGet(ctx, "a", "none", "b").Result())([]any{"1", nil, "2"})
	expect(r.MSetNX(ctx, "a", "5", "c", "5").Result())(false)
	expect(r.Incr(ctx, "n").Result())(1)
	expect(r.Decr(ctx, "n").Result())(0)
	expect(r.IncrBy(ctx, "n", 40).Result())(40)
	expect(r.DecrBy(ctx, "n", 50).Result())(-10)
	expect(r.Append(ctx, "s", "99").Result())(3)
	expect(r.StrLen(ctx, "s").Result())(3)
	expect(r.IncrByFloat(ctx, "x", 0.1).Result())(0.1)
	expect(r.IncrByFloat(ctx, "x", 0.2).Result())(0.3)
	expect(r.SetRange(ctx, "range", 2, "text").Result())(6)
	expect(r.GetRange(ctx, "range", 1, -2).Result())("\x00tex")
	expect(r.Do(ctx, "SUBSTR", "range", 2, 3).Text())("te")
	expect(r.GetEx(ctx, "range", 100*time.Second).Result())("\x00\x00text")
	near(r.TTL(ctx, "range").Result())
}

func near(left time.Duration, err error) {
	if err != nil || left < 95*time.Second || left > 100*time.Second {
		fail("%v %v, wanted about 100 s", left, err)
	}
}

func keys(r *redis.Client) {
	expect(r.Exists(ctx, "a", "b", "none", "a").Result())(3)
	expect(r.Type(ctx, "a").Result())("string")
	end := time.Now().Add(100 * time.Second)
	for _, set := range []func() *redis.BoolCmd{
		func() *redis.BoolCmd { return r.Expire(ctx, "a", 100*time.Second) },
		func() *redis.BoolCmd { return r.PExpire(ctx, "a", 100*time.Second) },
		func() *redis.BoolCmd { return r.ExpireAt(ctx, "a", end) },
		func() *redis.BoolCmd { return r.PExpireAt(ctx, "a", end) },
	} {
		expect(set().Result())(true)
		near(r.TTL(ctx, "a").Result())
		near(r.PTTL(ctx, "a").Result())
	}
	expect(r.PExpireTime(ctx, "a").Result())(time.Duration(end.UnixMilli()) * time.Millisecond)
	expect(r.ExpireTime(ctx, "a").Result())(time.Duration((end.UnixMilli()+500)/1000) * time.Second)
	expect(r.Persist(ctx, "a").Result())(true)
	expect(r.Touch(ctx, "a", "none").Result())(1)
	expect(r.Rename(ctx, "a", "moved").Result())("OK")
	expect(r.RenameNX(ctx, "moved", "b").Result())(false)
	expect(r.Copy(ctx, "moved", "a", 0, false).Result())(1)
	refused(r.Rename(ctx, "none", "a"), "no such key")
	expect(r.Del(ctx, "a", "none").Result())(1)
	expect(r.Unlink(ctx, "b").Result())(1)
	if r.RandomKey(ctx).Err() != nil {
		fail("%v", r.RandomKey(ctx))
	}
	for number := range 50 {
		r.Set(ctx, fmt.Sprintf("scan:%02d", number), number, 0)
	}
	found := 0
	scan := r.Scan(ctx, 0, "scan:*", 7).Iterator()
	for scan.Next(ctx) {
		found++
	}
	expect(found, scan.Err())(50)
	expect(len(r.Keys(ctx, "scan:1?").Val()), error(nil))(10)
	expect(r.Do(ctx, "RANGE", "scan:10", "scan:20", "LIMIT", 1).StringSlice())([]string{"scan:10"})
	if size := r.DBSize(ctx).Val(); size <= 50 {
		fail("%d keys", size)
	}
}

func hashes(r *redis.Client) {
	expect(r.HSet(ctx, "h", "f", "1", "g", "2").Result())(2)
	expect(r.HMSet(ctx, "h", "f", "1").Result())(true)
	expect(r.HSetNX(ctx, "h", "f", "9").Result())(false)
	expect(r.HGet(ctx, "h", "f").Result())("1")
	expect(r.HMGet(ctx, "h", "f", "none").Result())([]any{"1", nil})
	expect(r.HIncrBy(ctx, "h", "f", 41).Result())(42)
	expect(r.HExists(ctx, "h", "g").Result())(true)
	expect(r.HLen(ctx, "h").Result())(2)
	expect(r.HStrLen(ctx, "h", "f").Result())(2)
	expect(r.HIncrByFloat(ctx, "h", "x", 1.5).Result())(1.5)
	expect(r.HDel(ctx, "h", "x").Result())(1)
	fields := []string{}
	scan := r.HScan(ctx, "h", 0, "*", 1).Iterator()
	for scan.Next(ctx) {
		fields = append(fields, scan.Val())
	}
	expect(fields, scan.Err())([]string{"f", "42", "g", "2"})
	expect(r.HGetAll(ctx, "h").Result())(map[string]string{"f": "42", "g": "2"})
	expect(r.HKeys(ctx, "h").Result())([]string{"f", "g"})
	expect(r.HVals(ctx, "h").Result())([]string{"42", "2"})
	expect(r.HDel(ctx, "h", "f", "none").Result())(1)
	refused(r.Get(ctx, "h"), "WRONGTYPE")
}

func sets(r *redis.Client) {
	expect(r.SAdd(ctx, "t", "x", "y", "z").Result())(3)
	expect(r.SRem(ctx, "t", "z", "none").Result())(1)
	expect(r.SIsMember(ctx, "t", "x").Result())(true)
	expect(r.SMembersMap(ctx, "t").Result())(map[string]struct{}{"x": {}, "y": {}})
	expect(r.SCard(ctx, "t").Result())(2)
	expect(r.SMIsMember(ctx, "t", "x", "none").Result())([]bool{true, false})
	members := []string{}
	scan := r.SScan(ctx, "t", 0, "*", 1).Iterator()
	for scan.Next(ctx) {
		members = append(members, scan.Val())
	}
	expect(members, scan.Err())([]string{"x", "y"})
	r.SAdd(ctx, "u", "y", "w")
	expect(r.SInter(ctx, "t", "u").Result())([]string{"y"})
	expect(r.SUnion(ctx, "t", "u").Result())([]string{"w", "x", "y"})
	expect(r.SDiff(ctx, "t", "u").Result())([]string{"x"})
	expect(r.SInterStore(ctx, "combined", "t", "u").Result())(1)
	expect(r.SDiffStore(ctx, "combined", "t", "u").Result())(1)
	expect(r.SUnionStore(ctx, "combined", "t", "u").Result())(3)
	expect(r.SInterCard(ctx, 0, "t", "u").Result())(1)
	expect(r.SMove(ctx, "combined", "u", "x").Result())(true)
	if member := r.SPop(ctx, "t").Val(); member != "x" && member != "y" {
		fail("%q", member)
	}
}

func sortedSets(r *redis.Client) {
	members := []redis.Z{{Score: 1, Member: "one"}, {Score: 2, Member: "two"}, {Score: 3.5, Member: "three"}}
	expect(r.ZAdd(ctx, "z", members...).Result())(3)
	expect(r.ZAddArgs(ctx, "z", redis.ZAddArgs{XX: true, Ch: true, Members: []redis.Z{{Score: 2, Member: "one"}}}).Result())(1)
	expect(r.ZIncrBy(ctx, "z", 5.5, "one").Result())(7.5)
	expect(r.ZScore(ctx, "z", "three").Result())(3.5)
	isNil(r.ZScore(ctx, "z", "none"))
	expect(r.ZCard(ctx, "z").Result())(3)
	expect(r.ZMScore(ctx, "z", "three", "none").Result())([]float64{3.5, 0})
	expect(r.ZCount(ctx, "z", "(2", "+inf").Result())(2)
	expect(r.ZRank(ctx, "z", "two").Result())(0)
	expect(r.ZRevRank(ctx, "z", "two").Result())(2)
	expect(r.ZRevRangeByScore(ctx, "z", &redis.ZRangeBy{Min: "7", Max: "+inf"}).Result())([]string{"one"})
	scored := []string{}
	scan := r.ZScan(ctx, "z", 0, "t*", 1).Iterator()
	for scan.Next(ctx) {
		scored = append(scored, scan.Val())
	}
	expect(scored, scan.Err())([]string{"three", "3.5", "two", "2"})
	expect(r.ZRangeWithScores(ctx, "z", 0, 0).Result())([]redis.Z{{Score: 2, Member: "two"}})
	expect(r.ZRange(ctx, "z", 0, -1).Result())([]string{"two", "three", "one"})
	expect(r.ZRevRange(ctx, "z", 0, 0).Result())([]string{"one"})
	expect(r.ZRangeByScore(ctx, "z", &redis.ZRangeBy{Min: "(2", Max: "+inf", Count: 1}).Result())([]string{"three"})
	expect(r.ZPopMin(ctx, "z").Result())([]redis.Z{{Score: 2, Member: "two"}})
	expect(r.ZPopMax(ctx, "z").Result())([]redis.Z{{Score: 7.5, Member: "one"}})
	expect(r.ZRem(ctx, "z", "three", "none").Result())(1)
}

func lists(r *redis.Client) {
	expect(r.RPush(ctx, "l", "b", "c").Result())(2)
	expect(r.LPush(ctx, "l", "a").Result())(3)
	expect(r.LPushX(ctx, "none", "a").Result())(0)
	expect(r.RPushX(ctx, "none", "a").Result())(0)
	expect(r.LLen(ctx, "l").Result())(3)
	expect(r.LRange(ctx, "l", 0, -1).Result())([]string{"a", "b", "c"})
	expect(r.LIndex(ctx, "l", -1).Result())("c")
	expect(r.LPop(ctx, "l").Result())("a")
	expect(r.RPopCount(ctx, "l", 5).Result())([]string{"c", "b"})
}

func transactions(r *redis.Client) {
	r.Set(ctx, "from", 10, 0)
	move := func(tx *redis.Tx) error {
		value, err := tx.Get(ctx, "from").Int()
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "from", value-1, 0)
			pipe.Incr(ctx, "to")
			return nil
		})
		return err
	}
	expect(true, r.Watch(ctx, move, "from"))(true)
	expect(r.Get(ctx, "from").Result())("9")
	broken := func(tx *redis.Tx) error {
		r.Set(ctx, "from", 0, 0)
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "from", 5, 0).Err() })
		return err
	}
	if err := r.Watch(ctx, broken, "from"); !errors.Is(err, redis.TxFailedErr) {
		fail("%v: a watched key had changed", err)
	}
	for _, name := range []string{"watch", "unwatch"} { // Tx sends them without the client's hooks.
		notes.note(redis.NewCmd(ctx, name))
	}
	one := connect(strings.Split(r.Options().Addr, ":")[1]).Conn()
	pipe := one.Pipeline()
	multi, discard := pipe.Do(ctx, "MULTI"), pipe.Do(ctx, "DISCARD")
	if _, err := pipe.Exec(ctx); err != nil || multi.Val() != "OK" || discard.Val() != "OK" {
		fail("%v %v %v", err, multi, discard)
	}
	notes.note(multi)
	notes.note(discard)
	one.Close()
	many := r.Pipeline()
	for number := range 1000 {
		many.Set(ctx, fmt.Sprint("p", number), number, 0)
		many.Get(ctx, fmt.Sprint("p", number))
	}
	answers, err := many.Exec(ctx)
	for number := range 1000 {
		expect(answers[2*number+1].(*redis.StringCmd).Val(), err)(fmt.Sprint(number))
	}
}

func server(r *redis.Client) {
	if !strings.Contains(r.Info(ctx).Val(), "redis_version") {
		fail("%v", r.Info(ctx))
	}
	if settings := r.ConfigGet(ctx, "maxclients").Val(); len(settings) != 1 {
		fail("%v", settings)
	}
	expect(r.ConfigSet(ctx, "maxmemory-samples", "5").Result())("OK")
	refused(r.ConfigSet(ctx, "bogus", "5"), "Unknown option")
	expect(r.FunctionFlush(ctx).Result())("OK")
	refused(r.Do(ctx, "FLUSHALL", "bogus"), "syntax error")
	if r.Time(ctx).Val().Year() < 2020 {
		fail("%v", r.Time(ctx))
	}
	expect(r.Save(ctx).Result())("OK")
	expect(r.BgSave(ctx).Result())("Background saving started")
	// go-redis returns a connection in monitor mode to its pool, so here the command is sent directly, and tests/resp/redis_py.py
	// checks its output.
	monitor := connect(strings.Split(r.Options().Addr, ":")[1])
	expect(monitor.Do(ctx, "MONITOR").Text())("OK")
	monitor.Close()
}

func main() {
	r := connect(os.Args[1])
	r.FlushAll(ctx)
	connection(r, os.Args[1])
	for _, family := range []func(*redis.Client){
		stringCommands, keys, hashes, sets, sortedSets, lists, transactions, server,
	} {
		family(r)
	}
	names, err := r.CommandList(ctx, nil).Result()
	if err != nil || len(names) == 0 {
		fail("%v", err)
	}
	expect(r.FlushDB(ctx).Result())("OK")
	connect(os.Args[2]).Shutdown(ctx)
	missing := []string{}
	for _, name := range names {
		if !notes.called[strings.ToUpper(name)] {
			missing = append(missing, name)
		}
	}
	sort.Strings(missing)
	if len(missing) != 0 {
		fail("never called: %v", missing)
	}
	fmt.Printf("go-redis %s: %d commands\n", redis.Version(), len(names))
}

// SPDX-License-Identifier: GPL-2.0

// A conversation with a daemon, by github.com/beanstalkd/go-beanstalk; or workers of a tube.
//
// Usage: talk HOST PORT [TUBE NR]
//
// talk.js tells what a worker does; here NR of them share a process, and one that crashes
// closes its connection and makes another.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

func holds(condition bool, format string, args ...any) {
	if !condition {
		panic(fmt.Sprintf(format, args...))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func isJob(set *beanstalk.TubeSet, wanted uint64, body []byte) {
	id, got, err := set.Reserve(100 * time.Second)

	must(err)
	holds(id == wanted, "job %d, expected: %d", id, wanted)
	holds(bytes.Equal(got, body), "the body of %d is another one", id)
}

func isNotFound(err error) {
	holds(errors.Is(err, beanstalk.ErrNotFound), "expected NOT_FOUND: %v", err)
}

func put(tube *beanstalk.Tube, body []byte, pri uint32, delay time.Duration) uint64 {
	id, err := tube.Put(body, pri, delay, time.Minute)

	must(err)
	return id
}

func state(conn *beanstalk.Conn, id uint64) string {
	stats, err := conn.StatsJob(id)

	must(err)
	return stats["state"]
}

func converseOrder(conn *beanstalk.Conn, tube *beanstalk.Tube, set *beanstalk.TubeSet) {
	first := put(tube, []byte("first"), 10, 0)
	second := put(tube, []byte("second"), 5, 0)

	isJob(set, second, []byte("second"))
	must(conn.Touch(second))
	must(conn.Release(second, 20, 0))
	isJob(set, first, []byte("first"))
	must(conn.Bury(first, 15))
	holds(state(conn, first) == "buried", "not buried")
	nr, err := tube.Kick(10)
	must(err)
	holds(nr == 1, "kicked %d", nr)
	isJob(set, first, []byte("first"))
	must(conn.Release(first, 15, 1000*time.Second))
	holds(state(conn, first) == "delayed", "not delayed")
	must(conn.KickJob(first))
	isJob(set, first, []byte("first"))
	must(conn.Delete(first))
	isNotFound(conn.Delete(first))
	isJob(set, second, []byte("second"))
	must(conn.Delete(second))
}

func converse(conn *beanstalk.Conn, name string) {
	tube := beanstalk.NewTube(conn, name)
	set := beanstalk.NewTubeSet(conn, name)
	start := time.Now()

	converseOrder(conn, tube, set)
	_, _, err := set.Reserve(0)
	holds(errors.Is(err, beanstalk.ErrTimeout), "an empty tube: %v", err)
	late := put(tube, []byte("late"), 5, time.Second)
	isJob(set, late, []byte("late"))
	holds(time.Since(start) >= time.Second, "a delay of 1 s came early")
	must(conn.Delete(late))
	for _, body := range [][]byte{{0, 1, 255, '\r', '\n'}, bytes.Repeat([]byte("ä€"), 12000), {}} {
		id := put(tube, body, 5, 0)
		isJob(set, id, body)
		must(conn.Delete(id))
	}
	stats, err := tube.Stats()
	must(err)
	holds(stats["current-jobs-ready"] == "0", "%v", stats)
	must(tube.Pause(0))
}

// Returns whether the worker goes on, and whether its connection does.
func work(conn *beanstalk.Conn, set *beanstalk.TubeSet) (bool, bool) {
	id, body, err := set.Reserve(100 * time.Second)

	must(err)
	switch string(body) {
	case "release":
		must(conn.Release(id, 100, 0))
	case "crash":
		fmt.Printf("crashed %d\n", id)
		return true, false
	case "slow":
		time.Sleep(300 * time.Millisecond)
	default:
		must(conn.Delete(id))
		fmt.Printf("deleted %d\n", id)
	}
	return string(body) != "stop", true
}

func worker(address, name string) {
	for goesOn := true; goesOn; {
		conn, err := beanstalk.Dial("tcp", address)
		must(err)
		set := beanstalk.NewTubeSet(conn, name)
		for connected := true; goesOn && connected; {
			goesOn, connected = work(conn, set)
		}
		must(conn.Close())
	}
}

func main() {
	address := net.JoinHostPort(os.Args[1], os.Args[2])

	if len(os.Args) < 5 {
		conn, err := beanstalk.Dial("tcp", address)
		must(err)
		converse(conn, "go-1")
		must(conn.Close())
		return
	}
	nr, err := strconv.Atoi(os.Args[4])
	must(err)
	var all sync.WaitGroup
	for ; nr > 0; nr-- {
		all.Add(1)
		go func() {
			defer all.Done()
			worker(address, os.Args[3])
		}()
	}
	all.Wait()
}

// SPDX-License-Identifier: GPL-2.0

// Go's time.AfterFunc: a heap of four children a node for each processor. Each call reads the
// clock, and each timer that expires starts a goroutine. Before Go 1.23, Stop() only marks a
// timer, which is taken out of the heap later.
//
// The harness is that of peer.c.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	pairDelay    = 60 * time.Second
	armTime      = 4 * time.Microsecond // for each timer
	expireSpread = 2 * time.Microsecond // the same
	expireMargin = 50 * time.Millisecond
	checkDelay   = 20 * time.Millisecond
	checkSpread  = 300 * time.Millisecond
	sweepBytes   = 64 << 20
	seed         = 2463534242
)

var (
	count   int
	timers  []*time.Timer
	expired atomic.Int64
)

// --- clocks, memory, random numbers ---

var random uint32 = seed

// draw is xorshift32.
func draw() uint32 {
	random ^= random << 13
	random ^= random >> 17
	random ^= random << 5
	return random
}

// below returns a random time of so many whole units.
func below(limit, unit time.Duration) time.Duration {
	return time.Duration(draw()%uint32(limit/unit)) * unit
}

func costNs(usage *syscall.Rusage) float64 {
	return float64(usage.Utime.Nano() + usage.Stime.Nano())
}

func cpuNs() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		log.Fatal(err)
	}
	return costNs(&usage)
}

func sweep() {
	memory := make([]byte, sweepBytes)
	for i := 0; i < len(memory); i += 64 {
		memory[i] = 1
	}
	runtime.KeepAlive(memory)
}

// memoryBytes collects garbage and returns what is left.
func memoryBytes() float64 {
	debug.FreeOSMemory()
	rollup, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		log.Fatal(err)
	}
	field := bytes.Fields(rollup[bytes.Index(rollup, []byte("Anonymous:")):])[1]
	kib, err := strconv.Atoi(string(field))
	if err != nil {
		log.Fatal(err)
	}
	return float64(kib) * 1024
}

// sleepWithProcessor sleeps and returns how many timers have expired, and the time on a CPU
// so far. It keeps the only processor that goroutines have, so that no timer expires
// meanwhile: raw system calls do not give it away. The runtime asks for it by signals, which
// interrupt the sleep.
func sleepWithProcessor(duration time.Duration) (int64, float64) {
	var usage syscall.Rusage
	left := syscall.NsecToTimespec(int64(duration))
	leftAddress, usageAddress := uintptr(unsafe.Pointer(&left)), uintptr(unsafe.Pointer(&usage))
	for {
		_, _, errno := syscall.RawSyscall(syscall.SYS_NANOSLEEP, leftAddress, leftAddress, 0)
		if errno != syscall.EINTR {
			break
		}
	}
	early := expired.Load()
	syscall.RawSyscall(syscall.SYS_GETRUSAGE, syscall.RUSAGE_SELF, usageAddress, 0)
	return early, costNs(&usage)
}

func print(work string, value float64, unit string) {
	fmt.Printf("result w6.go.%s.%d %.6g %s\n", work, count, value, unit)
}

// --- what is measured ---

func arm(i uint32) {
	timers[i] = time.AfterFunc(pairDelay+below(pairDelay, time.Microsecond), func() { expired.Add(int64(i)) })
}

func armAll() {
	for i := range timers {
		arm(uint32(i))
	}
}

func pair(times int) {
	armAll()
	start := cpuNs()
	for i := 0; i < times; i++ {
		victim := draw() % uint32(count)
		timers[victim].Stop()
		arm(victim)
	}
	print("pair", (cpuNs()-start)/float64(times), "ns")
	if expired.Load() != 0 {
		log.Fatal("timers expired in the first minute")
	}
}

// expireAll returns 0 if timers were due before all were armed.
func expireAll() float64 {
	done := make(chan bool)
	spread := expireSpread * time.Duration(count)
	last := armTime*time.Duration(count) + expireMargin + spread
	expired.Store(0)
	for range timers {
		time.AfterFunc(last-below(spread, time.Microsecond), func() {
			if expired.Add(1) == int64(count) {
				done <- true
			}
		})
	}
	sweep()
	early, before := sleepWithProcessor(last + expireMargin)
	<-done
	cost := (cpuNs() - before) / float64(count)
	if early != 0 {
		return 0
	}
	return cost
}

func expire(times int) {
	var samples []float64
	runtime.GOMAXPROCS(1)
	for tries := 0; len(samples) < times; tries++ {
		if tries == 10*times {
			log.Fatal("timers are due before all are armed")
		}
		if cost := expireAll(); cost != 0 {
			samples = append(samples, cost)
		}
	}
	sort.Float64s(samples)
	print("expire", samples[times/2], "ns")
}

func measureBytes() {
	before := memoryBytes()
	armAll()
	print("bytes", (memoryBytes()-before)/float64(count), "bytes")
	runtime.KeepAlive(timers)
}

// fate is what becomes of a timer.
type fate struct {
	due         time.Time
	expirations int
	cancelled   bool
}

func check() {
	var lock sync.Mutex
	var lateUs []float64
	fates := make([]fate, count)
	for i := range timers {
		i := i
		delay := checkDelay + below(checkSpread, time.Millisecond)
		lock.Lock()
		fates[i].due = time.Now().Add(delay)
		timers[i] = time.AfterFunc(delay, func() {
			now := time.Now()
			lock.Lock()
			defer lock.Unlock()
			fates[i].expirations++
			lateUs = append(lateUs, float64(now.Sub(fates[i].due))/1e3)
		})
		lock.Unlock()
	}
	cancelled := 0
	for i := range timers {
		if draw()%2 == 0 && timers[i].Stop() {
			lock.Lock()
			fates[i].cancelled = true
			lock.Unlock()
			cancelled++
		}
	}
	for {
		time.Sleep(checkDelay + checkSpread)
		lock.Lock()
		if len(lateUs) >= count-cancelled {
			break
		}
		lock.Unlock()
	}
	sort.Float64s(lateUs)
	early := sort.SearchFloat64s(lateUs, 0)
	print("armed", float64(count), "count")
	print("cancelled", float64(cancelled), "count")
	print("expired", float64(len(lateUs)), "count")
	print("early", float64(early), "count")
	for i, fate := range fates {
		if fate.cancelled != (fate.expirations == 0) || fate.expirations > 1 {
			log.Fatalf("timer %d expired %d times; cancelled: %t", i, fate.expirations, fate.cancelled)
		}
	}
	print("late", lateUs[len(lateUs)/2], "us")
	print("least_late", lateUs[0], "us")
	if early != 0 {
		log.Fatalf("%d timers were early", early)
	}
}

func number(i int) int {
	if i >= len(os.Args) {
		return 1
	}
	number, err := strconv.Atoi(os.Args[i])
	if err != nil {
		log.Fatal(err)
	}
	return number
}

func main() {
	count = number(2)
	timers = make([]*time.Timer, count)
	switch os.Args[1] {
	case "pair":
		pair(number(3))
	case "expire":
		expire(number(3))
	case "bytes":
		measureBytes()
	case "check":
		check()
	default:
		log.Fatal("usage: go pair|expire|bytes|check COUNT [TIMES]")
	}
}

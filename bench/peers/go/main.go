// The adapter of the peers in Go. It uses the line protocol of bench/peers/protocol.md.
//
// Usage: go-adapter river|watermill. The variables TXINBOX_PEER_* describe the database.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A candidate is one way to consume messages once.
type candidate interface {
	// deliver returns an error if the broker must deliver the message again.
	deliver(key string, account int, fault string) error
	// begin and end are called before and after a run with this number of workers.
	begin(workers int)
	end()
}

var outMutex sync.Mutex

func say(line string) {
	outMutex.Lock()
	defer outMutex.Unlock()
	fmt.Println(line)
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

func run(c candidate, prefix string, first, count, workers int) {
	c.begin(workers)
	runsBefore := handlerRuns.Load()
	var next, acknowledged atomic.Int64
	times := make([]float64, count)
	start := time.Now()
	var wait sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				begun := time.Now()
				number := first + i
				err := c.deliver(fmt.Sprintf("%s-%08d", prefix, number), 1+number*617%50_000, "ok")
				if err == nil {
					acknowledged.Add(1)
				} else {
					fmt.Fprintln(os.Stderr, err)
				}
				times[i] = microseconds(time.Since(begun))
			}
		}()
	}
	wait.Wait()
	c.end()
	took := time.Since(start)
	sort.Float64s(times)
	say(fmt.Sprintf("done %.1f %d %d %.1f %.1f", microseconds(took), acknowledged.Load(),
		handlerRuns.Load()-runsBefore, times[count/2], times[count*99/100]))
}

func one(c candidate, fields []string) {
	account, _ := strconv.Atoi(fields[3])
	answer := "ack"
	if err := c.deliver(fields[2], account, fields[4]); err != nil {
		answer = "nack " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	say(fmt.Sprintf("one %s %.150s", fields[1], answer))
}

func main() {
	postgresql := os.Getenv("TXINBOX_PEER_DATABASE") == "postgresql"
	var c candidate
	switch os.Args[1] {
	case "river":
		c = newRiver()
	case "watermill":
		c = newWatermill(postgresql)
	default:
		panic("unknown candidate " + os.Args[1])
	}
	say("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fields := strings.Split(in.Text(), "\t")
		switch fields[0] {
		case "quit":
			return
		case "run":
			first, _ := strconv.Atoi(fields[2])
			count, _ := strconv.Atoi(fields[3])
			workers, _ := strconv.Atoi(fields[4])
			run(c, fields[1], first, count, workers)
		case "one":
			c.begin(1)
			go one(c, fields)
		}
	}
}

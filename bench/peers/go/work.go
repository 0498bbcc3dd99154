package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// A statement runs SQL in the transaction of a handler.
type statement func(sql string, arguments ...any) error

var handlerRuns atomic.Int64

func address(scheme string) string {
	return fmt.Sprintf("%s://%s:%s@127.0.0.1:%s/%s", scheme, os.Getenv("TXINBOX_PEER_USER"),
		os.Getenv("TXINBOX_PEER_PASSWORD"), os.Getenv("TXINBOX_PEER_PORT"), os.Getenv("TXINBOX_PEER_NAME"))
}

func updateSQL(postgresql bool) string {
	if postgresql {
		return "UPDATE bench_account SET n = n + 1 WHERE id = $1"
	}
	return "UPDATE bench_account SET n = n + 1 WHERE id = ?"
}

var errHandler = errors.New("the handler fails")

// work is the business work of a delivery, with the fault that the driver asks for.
func work(addOne func(account int) error, run statement, account int, fault string) error {
	handlerRuns.Add(1)
	if err := addOne(account); err != nil {
		return err
	}
	switch fault {
	case "two":
		return addOne(account + 1)
	case "three":
		if err := addOne(account + 1); err != nil {
			return err
		}
		return addOne(account + 2)
	case "throw":
		return errHandler
	case "slow":
		time.Sleep(1500 * time.Millisecond)
	case "hang":
		say("AT")
		time.Sleep(time.Minute)
	case "swallow":
		swallow(run("INSERT INTO peer_duplicate VALUES (1)"))
	case "deadlock":
		say("AT")
		time.Sleep(500 * time.Millisecond)
		swallow(addOne(account + 1))
		swallow(addOne(account + 2))
	case "commit":
		_ = run("COMMIT")
		_ = addOne(account + 1)
		return errHandler
	case "ddl":
		_ = run("CREATE TABLE IF NOT EXISTS peer_ddl (i int)")
		_ = addOne(account + 1)
		return errHandler
	}
	return nil
}

// swallow ignores an error of the database as a careless handler does.
func swallow(err error) {
	if err != nil {
		say("# swallowed " + strings.ReplaceAll(err.Error(), "\n", " "))
	}
}

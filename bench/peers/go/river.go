package main

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River: a message becomes a unique job, and is then acknowledged. A worker runs the job later, and completes it in the
// transaction of the work.
type riverPeer struct {
	pool    *pgxpool.Pool
	mutex   sync.Mutex
	client  *river.Client[pgx.Tx]
	workers int
	river.WorkerDefaults[job]
}

type job struct {
	Key     string `json:"key" river:"unique"`
	Account int    `json:"account"`
	Fault   string `json:"fault"`
}

func (job) Kind() string { return "peer" }

// River runs a stuck job again after an hour by default. The driver does not wait for so long.
const rescue = 4 * time.Second

func newRiver() candidate {
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(address("postgres"))
	if err != nil {
		panic(err)
	}
	config.MaxConns = 24
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		panic(err)
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		panic(err)
	}
	r := &riverPeer{pool: pool}
	r.begin(1)
	return r
}

func (r *riverPeer) Work(ctx context.Context, j *river.Job[job]) error {
	fault := j.Args.Fault
	if j.Attempt > 1 || os.Getenv("TXINBOX_PEER_AGAIN") != "" {
		fault = map[string]string{"deadlock": "three", "three": "three", "commit": "two", "two": "two"}[fault]
	}
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	run := func(sql string, arguments ...any) error { _, err := tx.Exec(ctx, sql, arguments...); return err }
	addOne := func(account int) error { return run(updateSQL(true), account) }
	if err := work(addOne, run, j.Args.Account, fault); err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, j); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func (r *riverPeer) begin(workers int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.workers == workers {
		return
	}
	ctx := context.Background()
	if r.client != nil {
		_ = r.client.Stop(ctx)
	}
	workerSet := river.NewWorkers()
	river.AddWorker(workerSet, r)
	client, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:              workerSet,
		FetchCooldown:        time.Millisecond,
		FetchPollInterval:    20 * time.Millisecond,
		JobTimeout:           rescue,
		RescueStuckJobsAfter: rescue,
	})
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		panic(err)
	}
	r.client, r.workers = client, workers
}

// end waits for all jobs. Then it stops the client, so that it does not poll while other candidates are measured.
func (r *riverPeer) end() {
	ctx := context.Background()
	for left := 1; left != 0; {
		time.Sleep(5 * time.Millisecond)
		if err := r.pool.QueryRow(ctx, "SELECT count(*) FROM river_job "+
			"WHERE state NOT IN ('completed', 'discarded', 'cancelled')").Scan(&left); err != nil {
			left = 1
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_ = r.client.Stop(ctx)
	r.client, r.workers = nil, 0
}

func (r *riverPeer) deliver(key string, account int, fault string) error {
	_, err := r.client.Insert(context.Background(), job{key, account, fault},
		&river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	return err
}

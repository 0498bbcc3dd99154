package main

import (
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
)

// Watermill: its middleware Deduplicator keeps the keys in memory. The handler has a separate transaction.
type watermill struct{ handler message.HandlerFunc }

func openDatabase(postgresql bool) (*sql.DB, error) {
	if postgresql {
		return sql.Open("pgx", address("postgres"))
	}
	return sql.Open("mysql", fmt.Sprintf("%s:%s@tcp(127.0.0.1:%s)/%s", os.Getenv("TXINBOX_PEER_USER"),
		os.Getenv("TXINBOX_PEER_PASSWORD"), os.Getenv("TXINBOX_PEER_PORT"), os.Getenv("TXINBOX_PEER_NAME")))
}

func newWatermill(postgresql bool) candidate {
	db, err := openDatabase(postgresql)
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	update, err := db.Prepare(updateSQL(postgresql))
	if err != nil {
		panic(err)
	}
	repository, err := middleware.NewMapExpiringKeyRepository(10 * time.Minute)
	if err != nil {
		panic(err)
	}
	deduplicator := &middleware.Deduplicator{
		KeyFactory: func(m *message.Message) (string, error) { return m.UUID, nil },
		Repository: repository,
		Timeout:    time.Minute,
	}
	return &watermill{deduplicator.Middleware(func(m *message.Message) ([]*message.Message, error) {
		account, _ := strconv.Atoi(m.Metadata.Get("account"))
		tx, err := db.Begin()
		if err != nil {
			return nil, err
		}
		addOne := func(account int) error { _, err := tx.Stmt(update).Exec(account); return err }
		run := func(sql string, arguments ...any) error { _, err := tx.Exec(sql, arguments...); return err }
		if err := work(addOne, run, account, m.Metadata.Get("fault")); err != nil {
			_ = tx.Rollback()
			return nil, err
		}
		return nil, tx.Commit()
	})}
}

func (w *watermill) begin(int) {}
func (w *watermill) end()      {}

func (w *watermill) deliver(key string, account int, fault string) error {
	m := message.NewMessage(key, nil)
	m.Metadata.Set("account", strconv.Itoa(account))
	m.Metadata.Set("fault", fault)
	_, err := w.handler(m)
	return err
}

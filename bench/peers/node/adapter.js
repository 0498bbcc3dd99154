// The adapter of pg-transactional-outbox: its storage of inbox messages, and its polling listener. It uses the line
// protocol of bench/peers/protocol.md. A delivery is acknowledged when its inbox row is committed. The listener then
// runs the handler.
//
// Usage: node adapter.js. The variables TXINBOX_PEER_* describe the database.
'use strict';

const crypto = require('crypto');
const readline = require('readline');
const { Pool } = require('pg');
const outbox = require('pg-transactional-outbox');
const { say, sleep, work } = require('./work.js');

const environment = process.env;
const database = {
  host: '127.0.0.1',
  port: Number(environment.TXINBOX_PEER_PORT),
  user: environment.TXINBOX_PEER_USER,
  password: environment.TXINBOX_PEER_PASSWORD,
  database: environment.TXINBOX_PEER_NAME,
  max: 16,
};
const again = { deadlock: 'three', three: 'three', commit: 'two', two: 'two' };
const logger = outbox.getDisabledLogger();
const pool = new Pool(database);
pool.on('error', () => {});
// Without this, a lost connection ends the process.
pool.on('connect', (client) => client.on('error', () => {}));

const configuration = (batch) => ({
  outboxOrInbox: 'inbox',
  dbListenerConfig: database,
  dbHandlerConfig: database,
  settings: {
    dbSchema: 'peer_inbox',
    dbTable: 'inbox',
    enableMaxAttemptsProtection: true,
    enablePoisonousMessageProtection: true,
    nextMessagesFunctionSchema: 'peer_inbox',
    nextMessagesFunctionName: 'next_inbox_messages',
    nextMessagesBatchSize: batch,
    nextMessagesPollingIntervalInMs: 25,
    nextMessagesLockInMs: 3000,
    messageProcessingTimeoutInMs: 4000,
  },
});
const store = outbox.initializeMessageStorage(configuration(1), logger);

/** Creates the tables with the statements that the library generates. */
const migrate = async () => {
  const found = await pool.query("SELECT to_regclass('peer_inbox.inbox') AS name");
  if (found.rows[0].name) return;
  const config = {
    outboxOrInbox: 'inbox',
    database: database.database,
    schema: 'peer_inbox',
    table: 'inbox',
    listenerRole: database.user,
    nextMessagesSchema: 'peer_inbox',
    nextMessagesName: 'next_inbox_messages',
  };
  const setup = outbox.DatabaseSetup;
  await pool.query(
    setup.dropAndCreateTable(config) + setup.createPollingFunction(config) + setup.setupPollingIndexes(config),
  );
};

/** Makes a UUID from the key, because the library's keys are UUIDs. */
const uuid = (key) => {
  const hash = crypto.createHash('md5').update(key).digest('hex');
  const part = (from, to) => hash.slice(from, to);
  return [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join('-');
};

let runs = 0;
const started = new Set();
const handler = {
  handle: async (message, client) => {
    runs += 1;
    const { account, fault } = message.payload;
    const second = started.has(message.id) || environment.TXINBOX_PEER_AGAIN; // a fault occurs only in the first run
    started.add(message.id);
    await work(client, account, second ? again[fault] || 'ok' : fault);
  },
};

let stopListening = null;
const stop = async () => {
  if (stopListening) await stopListening();
  stopListening = null;
};
const listen = (batch) => {
  if (stopListening) return;
  [stopListening] = outbox.initializePollingMessageListener(configuration(batch), handler, logger, {
    messageProcessingTransactionLevelStrategy: () => outbox.IsolationLevel.ReadCommitted,
  });
};

const deliver = async (key, account, fault) => {
  await outbox.executeTransaction(
    await pool.connect(),
    (client) =>
      store(
        {
          id: uuid(key),
          aggregateType: 'peer',
          aggregateId: 'peer',
          messageType: 'peer',
          concurrency: 'parallel',
          payload: { account, fault },
        },
        client,
      ),
    outbox.IsolationLevel.ReadCommitted,
  );
};

const one = async (tag, key, account, fault) => {
  let answer = 'ack stored';
  try {
    await deliver(key, account, fault);
  } catch (error) {
    answer = `nack ${error.message}`;
  }
  say(`one ${tag} ${answer}`.slice(0, 160));
};

const microseconds = (since) => Number(process.hrtime.bigint() - since) / 1000;

const run = async (prefix, first, count, workers) => {
  await stop();
  listen(workers);
  const runsBefore = runs;
  const times = [];
  let next = 0;
  let acknowledged = 0;
  const start = process.hrtime.bigint();
  const worker = async () => {
    for (let i = next++; i < count; i = next++) {
      const begun = process.hrtime.bigint();
      const number = first + i;
      try {
        await deliver(`${prefix}-${String(number).padStart(8, '0')}`, 1 + ((number * 617) % 50_000), 'ok');
        acknowledged += 1;
      } catch (error) {
        console.error(error.message);
      }
      times.push(microseconds(begun));
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  const unfinished = 'SELECT 1 FROM peer_inbox.inbox WHERE processed_at IS NULL AND abandoned_at IS NULL LIMIT 1';
  while ((await pool.query(unfinished)).rowCount > 0) await sleep(10);
  const took = microseconds(start);
  await stop(); // the listener must not poll while other candidates are measured
  times.sort((a, b) => a - b);
  say(`done ${took} ${acknowledged} ${runs - runsBefore} ${times[count >> 1]} ${times[Math.floor(count * 0.99)]}`);
};

const main = async () => {
  await migrate();
  listen(1);
  say('ready');
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const fields = line.split('\t');
    if (fields[0] === 'quit') break;
    if (fields[0] === 'run') await run(fields[1], Number(fields[2]), Number(fields[3]), Number(fields[4]));
    if (fields[0] === 'one') {
      listen(1);
      void one(fields[1], fields[2], Number(fields[3]), fields[4]); // two deliveries may run at the same time
    }
  }
  process.exit(0);
};

void main();

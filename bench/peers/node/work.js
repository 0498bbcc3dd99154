// The business work of a delivery, with the fault that the driver asks for: bench/peers/protocol.md.
'use strict';

const say = (line) => process.stdout.write(`${line}\n`);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const addOne = (client, account) =>
  client.query({ name: 'add_one', text: 'UPDATE bench_account SET n = n + 1 WHERE id = $1', values: [account] });

/** Ignores an error of the database as a careless handler does. */
const swallow = async (promise) => {
  try {
    await promise;
  } catch (error) {
    say(`# swallowed ${error.code}`);
  }
};

const work = async (client, account, fault) => {
  await addOne(client, account);
  switch (fault) {
    case 'two':
      await addOne(client, account + 1);
      break;
    case 'three':
      await addOne(client, account + 1);
      await addOne(client, account + 2);
      break;
    case 'throw':
      throw new Error('the handler fails');
    case 'slow':
      await sleep(1500);
      break;
    case 'hang':
      say('AT');
      await sleep(60000);
      break;
    case 'swallow':
      await swallow(client.query('INSERT INTO peer_duplicate VALUES (1)'));
      break;
    case 'deadlock':
      say('AT');
      await sleep(500);
      await swallow(addOne(client, account + 1));
      await swallow(addOne(client, account + 2));
      break;
    case 'commit':
      await client.query('COMMIT');
      await addOne(client, account + 1);
      throw new Error('the handler fails');
  }
};

module.exports = { say, sleep, work };

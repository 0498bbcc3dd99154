package peers;

import java.util.concurrent.atomic.AtomicLong;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;

/** The business work of a delivery, with the fault that the driver asks for. */
final class Work {
  private final JdbcTemplate jdbc;
  private final TransactionTemplate transaction;
  final AtomicLong runs = new AtomicLong();

  Work(JdbcTemplate jdbc, TransactionTemplate transaction) {
    this.jdbc = jdbc;
    this.transaction = transaction;
  }

  /** Runs the work for a peer that has opened no transaction. Several statements run in a new transaction. */
  void runInOwnTransaction(int account, String fault) {
    if (fault.equals("ok")) run(account, fault);
    else transaction.executeWithoutResult(status -> run(account, fault));
  }

  void run(int account, String fault) {
    runs.incrementAndGet();
    addOne(account);
    switch (fault) {
      case "ok" -> { }
      case "two" -> addOne(account + 1);
      case "three" -> {
        addOne(account + 1);
        addOne(account + 2);
      }
      case "throw" -> throw new IllegalStateException("the handler fails");
      case "slow" -> sleep(1500);
      case "hang" -> {
        Main.say("AT");
        sleep(60000);
      }
      case "swallow" -> swallow(() -> jdbc.update("INSERT INTO peer_duplicate VALUES (1)"));
      case "deadlock" -> {
        Main.say("AT");
        sleep(500);
        swallow(() -> addOne(account + 1));
        swallow(() -> addOne(account + 2));
      }
      case "commit", "ddl" -> {
        jdbc.execute(fault.equals("commit") ? "COMMIT" : "CREATE TABLE IF NOT EXISTS peer_ddl (i int)");
        addOne(account + 1);
        throw new IllegalStateException("the handler fails");
      }
      default -> throw new IllegalArgumentException(fault);
    }
  }

  private void addOne(int account) {
    jdbc.update("UPDATE bench_account SET n = n + 1 WHERE id = ?", account);
  }

  /** Ignores an error of the database as a careless handler does. */
  private static void swallow(Runnable work) {
    try {
      work.run();
    } catch (RuntimeException e) {
      Main.say("# swallowed");
    }
  }

  private static void sleep(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

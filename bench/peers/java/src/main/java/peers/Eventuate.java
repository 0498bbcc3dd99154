package peers;

import io.eventuate.common.jdbc.EventuateSchema;
import io.eventuate.common.spring.jdbc.EventuateSpringJdbcStatementExecutor;
import io.eventuate.common.spring.jdbc.EventuateSpringTransactionTemplate;
import io.eventuate.tram.consumer.jdbc.SqlTableBasedDuplicateMessageDetector;
import io.eventuate.tram.messaging.common.Message;
import io.eventuate.tram.messaging.common.MessageImpl;
import io.eventuate.tram.messaging.common.SubscriberIdAndMessage;
import java.util.HashMap;
import java.util.Map;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;

/** Eventuate Tram: its detector of duplicates opens the transaction, inserts the key and runs the handler. */
final class Eventuate implements Candidate {
  private final SqlTableBasedDuplicateMessageDetector detector;
  private final Work work;

  Eventuate(JdbcTemplate jdbc, TransactionTemplate transaction, Work work, boolean postgresql) {
    String now = postgresql ? "(ROUND(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP) * 1000))"
        : "ROUND(UNIX_TIMESTAMP(CURTIME(4)) * 1000)";
    this.detector = new SqlTableBasedDuplicateMessageDetector(new EventuateSchema(EventuateSchema.EMPTY_SCHEMA), now,
        new EventuateSpringJdbcStatementExecutor(jdbc), new EventuateSpringTransactionTemplate(transaction));
    this.work = work;
  }

  @Override
  public void deliver(String key, int account, String fault) {
    var message = new MessageImpl("", new HashMap<>(Map.of(Message.ID, key)));
    detector.doWithMessage(new SubscriberIdAndMessage("peer", message), () -> work.run(account, fault));
  }
}

package peers;

import javax.sql.DataSource;
import org.apache.camel.Exchange;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.impl.DefaultCamelContext;
import org.apache.camel.model.ProcessorDefinition;
import org.apache.camel.processor.idempotent.jdbc.JdbcMessageIdRepository;
import org.apache.camel.spring.spi.SpringTransactionPolicy;
import org.springframework.transaction.PlatformTransactionManager;

/**
 * Camel: the idempotent consumer with a repository in the database.
 *
 * With {@code together}, the key and the work are in one Spring transaction. Without it, each has its own transaction.
 */
final class Camel implements Candidate {
  private final ProducerTemplate producer;

  Camel(DataSource source, PlatformTransactionManager transactions, Work work, boolean together) throws Exception {
    var camel = new DefaultCamelContext();
    var repository = new JdbcMessageIdRepository(source, "peer");
    var policy = new SpringTransactionPolicy(transactions);
    policy.setPropagationBehaviorName("PROPAGATION_REQUIRED");
    camel.addRoutes(new RouteBuilder() {
      @Override
      public void configure() {
        errorHandler(noErrorHandler());
        ProcessorDefinition<?> route = from("direct:in");
        if (together) route = route.policy(policy);
        route.idempotentConsumer(header("key"), repository).process(exchange -> {
          int account = exchange.getIn().getHeader("account", Integer.class);
          String fault = exchange.getIn().getHeader("fault", String.class);
          if (together) work.run(account, fault);
          else work.runInOwnTransaction(account, fault);
        });
      }
    });
    camel.start();
    this.producer = camel.createProducerTemplate();
  }

  @Override
  public void deliver(String key, int account, String fault) throws Exception {
    Exchange exchange = producer.send("direct:in", each -> {
      each.getIn().setBody("");
      each.getIn().setHeader("key", key);
      each.getIn().setHeader("account", account);
      each.getIn().setHeader("fault", fault);
    });
    if (exchange.getException() != null) throw exchange.getException();
  }
}

package peers;

import org.springframework.aop.framework.ProxyFactory;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.integration.channel.NullChannel;
import org.springframework.integration.handler.advice.IdempotentReceiverInterceptor;
import org.springframework.integration.jdbc.metadata.JdbcMetadataStore;
import org.springframework.integration.selector.MetadataStoreSelector;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.messaging.MessageHandler;
import org.springframework.messaging.support.MessageBuilder;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * Spring Integration: the idempotent receiver with a metadata store in the database.
 *
 * With {@code together}, the key and the work are in one Spring transaction. Without it, each has its own transaction.
 */
final class SpringIntegration implements Candidate {
  private final TransactionTemplate transaction;
  private final boolean together;
  private final MessageHandler handler;

  SpringIntegration(JdbcTemplate jdbc, TransactionTemplate transaction, Work work, boolean together) {
    this.transaction = transaction;
    this.together = together;
    var context = new GenericApplicationContext();
    context.refresh();
    var store = new JdbcMetadataStore(jdbc);
    store.afterPropertiesSet();
    var interceptor = new IdempotentReceiverInterceptor(
        new MetadataStoreSelector(message -> (String) message.getHeaders().get("key"), store));
    interceptor.setBeanFactory(context);
    interceptor.setDiscardChannel(new NullChannel());
    interceptor.afterPropertiesSet();
    var factory = new ProxyFactory(MessageHandler.class, interceptor);
    factory.setInterfaces(MessageHandler.class);
    factory.setTarget((MessageHandler) message -> {
      int account = (Integer) message.getHeaders().get("account");
      String fault = (String) message.getHeaders().get("fault");
      if (together) work.run(account, fault);
      else work.runInOwnTransaction(account, fault);
    });
    this.handler = (MessageHandler) factory.getProxy();
  }

  @Override
  public void deliver(String key, int account, String fault) {
    var message = MessageBuilder.withPayload("").setHeader("key", key).setHeader("account", account)
        .setHeader("fault", fault).build();
    if (together) transaction.executeWithoutResult(status -> handler.handleMessage(message));
    else handler.handleMessage(message);
  }
}

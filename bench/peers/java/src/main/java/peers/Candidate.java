package peers;

/** One way to consume messages once, behind the line protocol of bench/peers/protocol.md. */
interface Candidate {
  /** One delivery. It returns if the broker may be told that the message is done, and throws if not. */
  void deliver(String key, int account, String fault) throws Exception;
}

package peers;

/** One way to consume messages once. The line protocol of bench/peers/protocol.md calls it. */
interface Candidate {
  /** Makes one delivery. Returns if the message may be acknowledged, and throws if not. */
  void deliver(String key, int account, String fault) throws Exception;
}

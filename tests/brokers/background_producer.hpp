#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

namespace txinbox::test {

/// Publishes numbered messages in the background, so that the broker always has some. It pauses while 1,000 messages
/// more were published than consumed.
class BackgroundProducer {
 public:
  /// Publishes the messages with the numbers from `from` to before `to`, and waits until the broker has them.
  using Publish = std::function<void(int from, int to)>;

  /// `at_once`: how many messages each call of `publish` gets.
  BackgroundProducer(Publish publish, int at_once) : publish_(std::move(publish)), at_once_(at_once) {}

  /// How many messages were published.
  int published() const { return published_; }

  /// Tells how many messages were consumed.
  void consumed(long long messages) { consumed_ = messages; }

  /// Returns how many messages were published in all. Throws the exception of `publish`.
  int stop() {
    thread_.request_stop();
    thread_.join();
    if (error_) std::rethrow_exception(error_);
    return published_;
  }

 private:
  void run(const std::stop_token& stop) {
    try {
      while (!stop.stop_requested()) {
        if (published_ - consumed_ >= 1000) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          continue;
        }
        publish_(published_, published_ + at_once_);
        published_ += at_once_;
      }
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  const Publish publish_;
  const int at_once_;
  std::atomic<int> published_ = 0;
  std::atomic<long long> consumed_ = 0;
  std::exception_ptr error_;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

}  // namespace txinbox::test

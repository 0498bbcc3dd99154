#pragma once

#include <string>

#include <txinbox/kafka.hpp>

#include "brokers/broker_under_test.hpp"
#include "publisher.hpp"

namespace txinbox::test {

class KafkaBroker : public BrokerUnderTest {
 public:
  std::string create(const std::string& name) override {
    publisher_.create(name);
    publisher_.create(dead_letters_of(name));
    return "kafka://" + broker_address() + "/" + name + "?group=" + name + "-group&session.timeout.ms=2000";
  }

  void publish(const std::string& name, const std::string& body, const std::string& key) override {
    publisher_.publish(name, {.body = body, .key = key});
  }

  void flush() override { publisher_.flush(); }

  std::string dead_letters_of(const std::string& name) override { return name + ".dead"; }

  std::vector<std::string> redrive_from(const std::string& name) override {
    return {"--from", "kafka://" + broker_address() + "/" + dead_letters_of(name) + "?group=" + name +
                          "-redrive&session.timeout.ms=2000"};
  }

  Publisher& publisher() { return publisher_; }

  KafkaOptions options(const std::string& name) {
    return {.brokers = broker_address(),
            .group = name + "-group",
            .topics = {name},
            .dead_letters = dead_letters_of(name),
            .properties = {{"session.timeout.ms", "2000"}}};
  }

 private:
  Publisher publisher_{broker_address()};
};

}  // namespace txinbox::test

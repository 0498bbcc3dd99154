// A user's program with a component. The component's target adds txinbox::core and the client library.

#include <string_view>

#include <txinbox/sample.hpp>
#include <txinbox/txinbox.hpp>

int main() {
  const std::string_view version = txinbox::version();
  return txinbox::sample::checksum({.business_key = "order123"}) != 0 && !version.empty() ? 0 : 1;
}

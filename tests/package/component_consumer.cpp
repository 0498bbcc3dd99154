// What a user of a component is: its own target brings txinbox and the component's client library.

#include <txinbox/sample.hpp>
#include <txinbox/txinbox.hpp>

int main() {
  const bool right = txinbox::sample::checksum({.business_key = "order123"}) != 0 && !txinbox::version().empty();
  return right ? 0 : 1;
}

// What a user of a component is: its own target brings txinbox and the component's client library.

#include <txinbox/sample.hpp>
#include <txinbox/txinbox.hpp>

int main() { return txinbox::sample::checksum({.business_key = "order123"}) == 0 ? 1 : 0; }

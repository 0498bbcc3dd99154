#include "backend/peer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstring>
#include <initializer_list>

#include <doctest/doctest.h>

using txinbox::backend::is_beyond_host;

namespace {

sockaddr_storage address(const char* text) {
  sockaddr_storage storage{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    std::memcpy(&storage, &v4, sizeof v4);
  } else {
    REQUIRE(inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
    v6.sin6_family = AF_INET6;
    std::memcpy(&storage, &v6, sizeof v6);
  }
  return storage;
}

}  // namespace

TEST_CASE("an address of the network is beyond the host, the loopback and a Unix socket are not") {
  for (const char* text : {"192.0.2.1", "10.0.0.1", "128.0.0.1", "2001:db8::1", "::ffff:192.0.2.1"}) {
    CAPTURE(text);
    CHECK(is_beyond_host(address(text)));
  }
  for (const char* text : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
    CAPTURE(text);
    CHECK(!is_beyond_host(address(text)));
  }
  sockaddr_storage local{};
  local.ss_family = AF_UNIX;
  CHECK(!is_beyond_host(local));
}

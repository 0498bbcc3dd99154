#include <doctest/doctest.h>

#include "backend/postgresql/flavour.hpp"

using txinbox::backend::unknown_postgresql;

TEST_CASE("PostgreSQL is known by version(), also as distributions and clouds build it") {
  for (const char* version :
       {"PostgreSQL 15.20 (Debian 15.20-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, "
        "64-bit",
        "PostgreSQL 12.22 on x86_64-pc-linux-musl, compiled by gcc (Alpine 13.2.1) 13.2.1 20231014, 64-bit",
        "PostgreSQL 15.4 - Percona Distribution on x86_64-pc-linux-gnu, compiled by gcc (GCC) 11.3.1, 64-bit",
        "PostgreSQL 17beta1 on aarch64-apple-darwin23.4.0, compiled by Apple clang version 15.0.0, 64-bit",
        "PostgreSQL 18devel on x86_64-linux, compiled by gcc-13.2.0, 64-bit",
        "PostgreSQL 16.2 (Ubuntu 16.2-1.pgdg22.04+1) on x86_64-pc-linux-gnu, compiled by gcc, 64-bit"}) {
    CAPTURE(version);
    CHECK(unknown_postgresql(version).empty());
  }
}

TEST_CASE("a server that speaks PostgreSQL's protocol and is not PostgreSQL is named") {
  for (const char* version :
       {"CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)",
        "PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 16.0.6, 64-bit",
        "PostgreSQL 15.2-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang, 64-bit",
        "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017, Redshift 1.0.54321",
        "PostgreSQL 12.12 (Greenplum Database 7.0.0 build commit:0a7a3566) on x86_64-pc-linux-gnu",
        "PostgreSQL 15.4 (EnterpriseDB Advanced Server 15.4.1) on x86_64-pc-linux-gnu",
        "PostgreSQL 9.5.0 on x86_64-unknown-linux-gnu (Materialize v0.80.0)",
        "PostgreSQL 9.2.4 (openGauss 5.0.0 build a07d57c3) compiled at 2023-03-29", "PostgreSQL"}) {
    CAPTURE(version);
    CHECK(unknown_postgresql(version) == version);
  }
}

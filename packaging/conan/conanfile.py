"""The Conan recipe: `conan create packaging/conan`. docs/operations/building.md describes the options."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

required_conan_version = ">=2.0"

# Each component with what Conan calls its client library.
COMPONENTS = {
    "http": ["openssl/[>=3 <4]", "nlohmann_json/3.11.2"],
    "kafka": ["librdkafka/2.3.0"],
    "rabbitmq": ["rabbitmq-c/0.13.0"],
    "redis": ["hiredis/1.2.0"],
    "rocketmq": ["grpc/1.54.3", "protobuf/3.21.12"],
}
DATABASES = {
    "sqlite3": "sqlite3/[>=3.35 <4]",
    "mysql": "mariadb-connector-c/3.3.3",
    "postgresql": "libpq/15.5",
}


class TxinboxRecipe(ConanFile):
    name = "txinbox"
    description = "A transactional inbox: each business key takes effect exactly once"
    topics = ("inbox", "outbox", "idempotent-consumer", "messaging", "sql")
    # The owner has not chosen a licence yet.
    license = "LicenseRef-not-chosen"
    package_type = "library"
    settings = "os", "compiler", "build_type", "arch"
    options = {
        "shared": [True, False],
        # Without SOCI: txinbox::core alone.
        "soci": [True, False],
        # conan: the client libraries are packages of Conan. system: they are those of the machine.
        "dependencies": ["conan", "system"],
        **{name: [True, False] for name in [*DATABASES, *COMPONENTS]},
    }
    default_options = {
        "shared": False,
        "soci": True,
        "dependencies": "conan",
        **{name: True for name in DATABASES},
        **{name: False for name in COMPONENTS},
    }

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "txinbox", "version.hpp"))
        self.version = ".".join(re.findall(r"^#define TXINBOX_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)$", header, re.MULTILINE))

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "*.md", "cmake/*", "components/*", "docs/*.md", "include/*", "migrations/*", "ops/*",
                        "src/*"):
            copy(self, pattern, src=root, dst=self.export_sources_folder, excludes=("build/*", "*/tests/*"))

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("txinbox is tested on Linux only")
        if not any(self.options.get_safe(name) for name in DATABASES):
            raise ConanInvalidConfiguration(f"txinbox needs one of the options {', '.join(DATABASES)}")

    def requirements(self):
        if self.options.dependencies == "system":
            return
        wanted = ["fmt/[>=9 <11]", "openssl/[>=3 <4]"]
        if self.options.soci:
            wanted.append("soci/4.0.3")
        wanted += [package for name, package in DATABASES.items() if self.options.get_safe(name)]
        for name, packages in COMPONENTS.items():
            if self.options.get_safe(name):
                wanted += packages
        if "nlohmann_json/3.11.2" not in wanted:
            wanted.append("nlohmann_json/3.11.2")
        for package in dict.fromkeys(wanted):
            # Every handler uses SOCI's sessions, so its headers are part of the interface.
            self.requires(package, transitive_headers=package.startswith("soci/"))

    def configure(self):
        if self.options.dependencies == "conan" and self.options.soci:
            for name in DATABASES:
                setattr(self.options["soci"], f"with_{name}", self.options.get_safe(name))

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        switch = {True: "ON", False: "OFF"}
        for name in [*DATABASES, *COMPONENTS, "soci"]:
            toolchain.cache_variables[f"TXINBOX_WITH_{name.upper()}"] = switch[bool(self.options.get_safe(name))]
        toolchain.cache_variables["TXINBOX_WITH_OPENTELEMETRY"] = "OFF"
        for part in ("CLI", "TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"TXINBOX_BUILD_{part}"] = "OFF"
        toolchain.cache_variables["CMAKE_UNITY_BUILD"] = "ON"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # txinbox has its own CMake package, with a component for each database.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "txinbox")]
        self.cpp_info.libs = []

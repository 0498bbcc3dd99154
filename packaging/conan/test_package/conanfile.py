import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout

COMPONENTS = ("kafka", "rabbitmq", "redis", "rocketmq")


class TestPackage(ConanFile):
    """Builds a user's program of tests/package with the package, and runs it."""

    settings = "os", "compiler", "build_type", "arch"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        options = self.dependencies["txinbox"].options
        toolchain.cache_variables["WITH_SOCI"] = "ON" if options.soci else "OFF"
        toolchain.cache_variables["WITH_BROKERS"] = "ON" if all(options.get_safe(c) for c in COMPONENTS) else "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for program in ("consumer", "broker_consumer"):
                path = os.path.join(self.cpp.build.bindir, program)
                if os.path.exists(path):
                    self.run(path, env="conanrun")

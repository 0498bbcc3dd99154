#include <algorithm>
#include <stdexcept>

#include "effects.hpp"
#include "sections.hpp"
#include "variants.hpp"

namespace txinbox::bench {

Json run_variant(const Target& target, const VariantOptions& options) {
  const Database database(target);
  Pool pool = database.pool(2);
  const Variants variants(pool);
  const auto variant = std::ranges::find(variants.all(), options.variant, &Variant::name);
  if (variant == variants.all().end()) throw std::runtime_error("no variant is called " + options.variant);
  Effects effects(variants.session());
  variant->run(messages(variant->name, 0, options.messages));
  effects.expect_updates(variant->name, options.messages);
  return {{"messages", options.messages}};
}

}  // namespace txinbox::bench

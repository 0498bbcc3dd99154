#include "console/json_output.hpp"

#include <nlohmann/json.hpp>

namespace txinbox::cli {
namespace {

using Node = nlohmann::ordered_json;

Node node_of(const JsonScalar& scalar) {
  return std::visit([](auto value) { return Node(value); }, scalar.value());
}

std::string text_of(const Node& node) { return node.dump(-1, ' ', false, Node::error_handler_t::replace); }

}  // namespace

struct Json::Tree {
  Node root;
};

Json Json::array() {
  Json json;
  json.tree_->root = Node::array();
  return json;
}

Json::Json(Members members) : tree_(std::make_unique<Tree>(Tree{Node::object()})) {
  for (const auto& [name, value] : members) set(name, value);
}

Json::~Json() = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(Json&& other) noexcept = default;

void Json::set(std::string_view name, JsonScalar value) { tree_->root[std::string(name)] = node_of(value); }

void Json::set(std::string_view name, Json value) { tree_->root[std::string(name)] = std::move(value.tree_->root); }

void Json::append(JsonScalar element) { tree_->root.push_back(node_of(element)); }

void Json::append(Json element) { tree_->root.push_back(std::move(element.tree_->root)); }

std::string Json::text() const { return text_of(tree_->root); }

std::string json_text(JsonScalar value) { return text_of(node_of(value)); }

}  // namespace txinbox::cli

"""The cases of public reports and files that were tried on Podium: what fell short once, and what must stay right.

Each row names the tests that prove what is right now. What a row can show by itself, on the input that was tried, is in
test_field_table.py under the same words.
"""

from __future__ import annotations

OPENAPI = "pool_registry/imports/test_openapi.py"
BODIES = "pool_registry/imports/test_openapi_bodies.py"
STYLES = "pool_registry/imports/test_openapi_styles.py"
COMPOSED = "pool_registry/imports/test_openapi_composed.py"
NAMES = "pool_registry/imports/test_names.py"
PASTE = "studio/cli/test_paste.py"
PASTED = "pool_registry/pasted/test_table.py"
MCP = "pool_registry/workers/test_mcp.py"
MCP_SDK = "pool_registry/workers/test_mcp_sdk.py"
COERCE = "pool_registry/schemas/test_coerce_arguments.py"
MEND = "pool_registry/schemas/test_mend_schema.py"
FILES = "trainer/tasks/sources/test_files.py"
TOOL_USE = "trainer/tasks/tool_use/test_recorded_pool.py"
LESSONS = "trainer/demonstrations/test_lesson_files.py"
REQUEST = "studio/model_server/test_request.py"
SERVER = "studio/model_server/test_server.py"
CLIENTS = "studio/model_server/test_clients.py"
GUESSES = "pool_registry/language_models/test_model_guesses.py"
FOLDERS = "pool_registry/language_models/test_hostile_folders.py"

FELL_SHORT: dict[str, tuple[str, ...]] = {
    "Petstore from the shell": (f"{PASTE}::test_a_document_that_wants_a_key_takes_it_from_the_shell",),
    "GitHub, added to a pool": (
        "studio/pages/test_pool_commands.py::test_many_workers_are_added_with_a_check_for_each_and_one_version",
    ),
    "multipart/form-data and binary bodies": (
        f"{BODIES}::test_parts_of_a_form",
        f"{BODIES}::test_bodies_that_are_a_file_or_a_text",
    ),
    "form body with encoding, explode false": (f"{STYLES}::test_forms_are_written_as_their_encoding_says",),
    "nested deepObject in a query": (f"{STYLES}::test_query_styles",),
    "path style label and matrix": (f"{STYLES}::test_path_styles",),
    "body of allOf": (f"{COMPOSED}::test_what_is_joined_becomes_arguments",),
    "names from the shell": (
        f"{NAMES}::test_a_long_prefix_is_cut_before_the_name",
        f"{PASTE}::test_a_clients_settings_and_a_command_take_environment_and_name",
    ),
    "settings of MCP clients": (
        f"{PASTED}::test_a_servers_keys_become_references_and_the_rest_stays",
        f"{PASTE}::test_an_import_of_something_else_names_the_command",
    ),
    "an OpenAI tools list as workers": (
        f"{PASTED}::test_tools_are_called_where_a_person_says_and_echo_their_calls_till_then",
    ),
    "names in other scripts": (f"{NAMES}::test_names_keep_their_meaning_in_latin_letters",),
    "types from training data": (
        f"{MCP}::test_one_odd_tool_does_not_lose_its_server",
        f"{MEND}::test_types_are_read_by_any_name",
    ),
    "null for an optional argument": (f"{COERCE}::test_null_is_left_out_where_it_is_the_default",),
    "a server of an unknown protocol version": (
        f"{MCP}::test_a_foreign_version_of_the_protocol_is_named_with_those_that_are_spoken",
    ),
    "a file without a usable line": ("trainer/cli/test_command_line.py::test_every_error_of_the_house_is_one_line",),
    "GSM8K JSONL": (f"{FILES}::test_the_answer_of_a_cell_is_what_stands_at_its_end",),
    "CSV with question,answer": (f"{FILES}::test_a_file_of_any_format_gives_its_tasks_and_says_how_it_was_read",),
    "CSV with semicolons": (f"{FILES}::test_typed_answers_are_numbers_where_they_are",),
    "Parquet question/answer": (f"{FILES}::test_lines_and_tables_are_read_alike",),
    "JSON array of right lines": (f"{FILES}::test_a_file_of_any_format_gives_its_tasks_and_says_how_it_was_read",),
    "ShareGPT with function_call and observation": (
        f"{TOOL_USE}::test_a_file_of_each_format_becomes_a_pool_whose_plan_runs",
    ),
    "BFCL v4": (f"{TOOL_USE}::test_every_way_that_a_suite_accepts_is_right",),
    "Alpaca": (f"{LESSONS}::test_conversations_without_tools_are_learnt_as_they_stand",),
    "weight 0 and content parts": (f"{LESSONS}::test_a_message_of_weight_0_is_not_learnt",),
    "a tool that returns an object": (
        "orchestrator/presentation/test_present_answer.py::test_an_output_is_named_after_the_call_that_was_made",
    ),
    "tools with type dict and float": (f"{REQUEST}::test_one_odd_tool_costs_no_request",),
    "a browser client": (
        "studio/model_server/test_allowed_origins.py::test_a_page_that_is_named_is_served",
        f"{CLIENTS}::test_a_clients_requests_are_answered_in_its_own_types",
    ),
    "a GGUF file as a model": (f"{GUESSES}::test_a_gguf_file_belongs_to_llama_cpp_or_ollama",),
    "an adapter folder as a model, and Ollama's name": (
        f"{GUESSES}::test_an_adapter_belongs_under_adapter_and_a_model_under_model",
        f"{GUESSES}::test_ollamas_names_are_known",
    ),
    "a trained folder without podium.json": (
        "orchestrator/test_foreign_checkpoints.py::test_a_trained_folder_without_a_manifest_names_the_command",
    ),
}

RIGHT_ALREADY: dict[str, tuple[str, ...]] = {
    "3.1 webhooks without paths": (),
    "forms of Twilio": (f"{STYLES}::test_forms_are_written_as_their_encoding_says",),
    "servers override, key reference, private address": (
        f"{OPENAPI}::test_wrong_settings_are_told_by_field",
        f"{OPENAPI}::test_a_private_server_needs_the_switch",
        f"{OPENAPI}::test_keys_go_where_the_scheme_says_and_into_no_error",
    ),
    "deepObject of one level": (f"{STYLES}::test_query_styles",),
    "MCP servers of the official package": (
        f"{MCP_SDK}::test_the_official_server_from_the_list_of_tools_to_the_last_process",
    ),
    "a server that fails by its own fault": (f"{MCP}::test_a_server_that_cannot_be_used_says_why",),
    "names with dots, slashes, spaces and 128 characters": (f"{NAMES}::test_every_name_is_valid_and_unique",),
    "anyOf with null, lists of types and nested arrays": (f"{MEND}::test_a_usable_schema_stays_as_it_is",),
    "drafts by $schema, $id, patterns and large defaults": (
        f"{MEND}::test_whatever_comes_in_a_usable_schema_comes_out",
    ),
    "tools in pages, noise, an older protocol": (
        f"{MCP}::test_every_tool_of_every_page_is_offered_also_by_a_server_that_prints",
    ),
    "TSV with query, answer": (),
    "plain OpenAI fine-tuning messages": (f"{TOOL_USE}::test_questions_and_plain_chats_are_no_data_sets_of_tool_use",),
    "requests with odd bodies and headers": (f"{REQUEST}::test_what_changes_nothing_is_accepted_without_a_word",),
    "streams with and without usage": (
        f"{SERVER}::test_a_stream_tells_the_steps_as_reasoning_and_then_the_answer",
        f"{SERVER}::test_progress_arrives_while_the_answer_is_not_there_yet",
    ),
    "130 tools": (),
    "legacy functions": (f"{REQUEST}::test_what_cannot_be_honoured_is_accepted_and_reported",),
    "models and models/ID": (f"{SERVER}::test_the_model_is_listed",),
    "OpenAI's and Vercel's JavaScript": (f"{CLIENTS}::test_every_client_has_the_usual_features",),
    "LangChain": (f"{SERVER}::test_langchain_talks_to_it",),
    "LiteLLM": (f"{CLIENTS}::test_every_client_has_the_usual_features",),
    "empty messages, unknown model": (
        f"{REQUEST}::test_a_value_of_the_wrong_type_is_named",
        f"{REQUEST}::test_another_model_is_a_404_that_names_the_right_one",
    ),
    "LoRA, DoRA and rsLoRA": (
        "pool_registry/language_models/test_lora_adapters.py::test_an_adapter_says_what_it_says_merged_into_the_base",
    ),
    "sharded checkpoints": (f"{FOLDERS}::test_a_folder_of_safetensors_is_taken",),
    "adapter_model.bin": (f"{FOLDERS}::test_a_hostile_adapter_is_refused_before_anything_is_read",),
    "visitors' own key": ("studio/publish/test_publish.py::test_own_functions_are_published_together_with_the_model",),
}

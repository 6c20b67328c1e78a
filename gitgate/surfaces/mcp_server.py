"""Surfaces: gates for any client of the Model Context Protocol: six tools, none of which answers. `git gate mcp` serves them.

What asks through this server is an agent, whoever started the server: it answers nothing, and withdraws its own alone. While it
waits, a client that can show a form asks whoever sits there. That may be a program, so what it gives is nobody's approval: a
proposal for a person, or an answer that nobody confirmed where the policy takes such (`automatic: true`).

The protocol is spoken by its own library, which takes a second to load: only `serve_mcp` does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..context import Desk, open_desk
from ..document import dataclass, field, field_of
from ..errors import BadAnswer, GateError, MissingExtra, Usage
from ..model import AWAITING
from ..model.gate import PROPOSED, Conversation, Gate, Question
from ..questions.file import ASKED, GateField
from ..questions.types import TYPES, expected, type_of
from ..version import VERSION

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp_types import CallToolRequestParams, CallToolResult, ElicitRequest, InputRequiredResult

VIA = "mcp"
CLIENT = "mcp-client"
FORM = "answer"  # what the one form is called that a call of `wait` may want filled in
USUAL_WAIT, MOST_WAIT, SLICE = 50.0, 3600.0, 2.0
MOST_LISTED = 100
WHAT = (
    "Questions to a person, kept in this Git repository. Ask where a decision is not yours to take: ask gives an id at once, and the question "
    "stays, with the uncommitted work, until a person answers it, wherever they are. Then either wait for it, or end your turn and check later. "
    "Silence is no answer; no tool answers for a person, and no answer may be made up."
)

Json = dict[str, Any]


@dataclass(frozen=True)
class McpTool:
    """Tool of the server, as a client is told of it."""

    name: str
    title: str
    words: str
    takes: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    reads: bool = True

    @property
    def schema(self) -> Json:
        return {
            "type": "object",
            "properties": dict(self.takes),
            "required": list(self.needs),
            "additionalProperties": False,
        }


def schema_of(row: GateField) -> Json:
    """Return the schema of a gate's field as a tool takes it, by its name in a question file."""
    kinds: dict[str, Json] = {
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 100},
        "people": {"type": "array", "items": {"type": "string"}},
        "length": {"type": "string"},
    }
    kind = (
        {"type": "string", "enum": list(row.choices)}
        if row.choices
        else kinds.get(row.entry, {"type": "string"})
    )
    example = f" For example {row.metavar}." if row.entry == "length" else ""
    return {**kind, "description": row.help.replace("; repeatable.", ".") + example}


OPTION = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"label": {"type": "string"}, "description": {"type": "string"}},
            "required": ["label"],
        },
    ]
}
QUESTION: Json = {
    "prompt": {"type": "string", "description": "The question, in words that stand by themselves."},
    "type": {
        "type": "string",
        "enum": list(TYPES),
        "description": "text unless there are options; approval is yes or no.",
    },
    "options": {"type": "array", "items": OPTION, "description": "What may be chosen."},
    "other": {"type": "boolean", "description": "False: only the options, no words of one's own."},
    "default": {"description": "The answer if nobody gives one, with on_timeout default. Nobody's approval."},
    "schema": {"type": "object", "description": "JSON Schema, of a question of type form."},
}
SEVERAL = {
    "type": "array",
    "description": "Several questions that are answered together, in place of prompt.",
    "items": {
        "type": "object",
        "properties": {"key": {"type": "string"}, **QUESTION},
        "required": ["prompt"],
    },
}
NO_WORK = {"type": "boolean", "description": "True: leave the uncommitted work out."}
ID = {"type": "string", "description": "The gate's id, or a beginning of it."}

TOOLS: tuple[McpTool, ...] = (
    McpTool(
        "ask",
        "Ask a person",
        "Open a gate: a question to a person, with the uncommitted work. Gives its id at once; nothing is answered yet.",
        {**QUESTION, "questions": SEVERAL, **{row.word: schema_of(row) for row in ASKED}, "no_work": NO_WORK},
        reads=False,
    ),
    McpTool(
        "check", "Look for the answer", "The answer of a gate, if there is one by now.", {"id": ID}, ("id",)
    ),
    McpTool(
        "wait",
        "Wait for the answer",
        "Wait until a gate is answered, for some seconds. Still waiting afterwards is no answer: wait again, or end your turn.",
        {
            "id": ID,
            "seconds": {"type": "number", "minimum": 0, "maximum": MOST_WAIT, "default": USUAL_WAIT},
        },
        ("id",),
    ),
    McpTool(
        "withdraw",
        "Take a question back",
        "Take back a question of your own that is no longer needed.",
        {"id": ID, "reason": {"type": "string", "description": "Why."}},
        ("id", "reason"),
        reads=False,
    ),
    McpTool(
        "list",
        "What waits",
        "The gates of this repository that wait for a person, most pressing first.",
        {"all": {"type": "boolean", "description": "Those that are over as well."}},
    ),
    McpTool(
        "show", "One gate", "All of a gate: question, context, work, answer, history.", {"id": ID}, ("id",)
    ),
)
BY_NAME = {tool.name: tool for tool in TOOLS}


@dataclass(frozen=True)
class ToolResult:
    """Result of a tool, in words to read and as data."""

    words: str
    data: Json = field(default_factory=dict)
    wrong: bool = False


class GateTools:
    """Tools over one repository. Each call opens the repository anew."""

    def __init__(self, env: Mapping[str, str], place: Path) -> None:
        from ..agents import without_conversation

        # Whose conversation a client is in is not known here: what started this server may be in another one.
        self.env = {"AI_AGENT": CLIENT, **without_conversation(env)}
        self.place = place
        self.asked: dict[str, str] = {}  # by this server: the gate's id, and the name that it was asked under
        self.shown: dict[
            str, str
        ] = {}  # to whoever sits at the client: the gate's id, and the commit that they saw
        self.lock = threading.Lock()

    def desk(self, gate: str = "") -> Desk:
        own = self.asked.get(gate, "")
        return open_desk(self.place, {**self.env, **({"GITGATE_AGENT": own} if own else {})})

    def call(self, name: str, given: Mapping[str, Any]) -> ToolResult:
        """Run any tool but `wait`; an error becomes words that say what to do."""
        tool = BY_NAME.get(name)
        try:
            if tool is None:
                raise Usage(f"there is no tool {name!r}", hint=f"the tools are {', '.join(BY_NAME)}")
            check_arguments(tool, given)
            run: Callable[..., ToolResult] = getattr(self, f"do_{name}")
            with self.lock:
                return run(**given)
        except GateError as refused:
            return told_error(refused)

    def do_ask(self, no_work: bool = False, **said: Any) -> ToolResult:
        from ..acts.asking import AskWishes, ask
        from ..questions.drafts import read_draft
        from ..render.letter import ways_to_answer

        draft = read_draft(field_of(said, "the question"))
        desk = self.desk()
        try:
            asked = ask(desk, draft, AskWishes(work=not no_work))
        finally:
            desk.close()
        gate = asked.gate
        self.asked[gate.id] = gate.opened.asked.agent
        published = asked.published
        where = f", and is on {published.remote}" if published.pushed else ", and is in this clone alone"
        doubt = f" ({published.reason})" if published.reason else ""
        answer = "\n".join(f"  {line}" for line in ways_to_answer(gate))
        words = (
            f"{gate.id}\nGate {gate.id} waits for a person{where}{doubt}. Nothing is answered yet: wait for it, or end your turn and "
            f"check later. A person answers with:\n{answer}"
        )
        return ToolResult(words, {"id": gate.id, "state": gate.state, "pushed": published.pushed})

    def do_check(self, id: str) -> ToolResult:
        return self.look(id, lambda _desk, gate: gate)

    def do_show(self, id: str) -> ToolResult:
        from ..acts import find_gate
        from ..render import shapes
        from ..render.letter import letter

        desk = self.desk()
        try:
            found = find_gate(desk, id)
            data = shapes.gate(found.gate, pushed=found.pushed, archived=found.archived)
            return ToolResult(
                letter(found.gate, desk.clock(), 100), {**data, "history": shapes.history(found.gate.history)}
            )
        finally:
            desk.close()

    def do_list(self, all: bool = False) -> ToolResult:
        from .. import gates
        from ..text import ago, parse_time

        desk = self.desk()
        try:
            chosen = gates.Filter(all=all)
            found = gates.list_gates(desk, chosen)[:MOST_LISTED]
            rows = [
                {
                    "id": one.id,
                    "state": one.state,
                    "priority": one.priority,
                    "title": one.title,
                    "asked_by": one.agent,
                    "at": one.at,
                }
                for one in found
            ]
            lines = [
                f"{one.id}  {one.state}  {ago(desk.clock() - parse_time(one.at))}  {one.title}"
                for one in found
            ]
        finally:
            desk.close()
        return ToolResult("\n".join(lines) or "Nothing waits.", {"gates": rows})

    def do_withdraw(self, id: str, reason: str) -> ToolResult:
        from .. import acts
        from ..acts import answering

        desk = self.desk()
        try:
            gate = acts.open_gate(desk, id)
        finally:
            desk.close()
        desk = self.desk(gate.id)
        try:
            gone = answering.withdraw(desk, gate, reason, via=VIA).gate
        finally:
            desk.close()
        return ToolResult(f"Gate {gone.id} is withdrawn.", {"id": gone.id, "state": gone.state})

    def wait_a_little(self, id: str, seconds: float) -> ToolResult:
        """Wait at most so many seconds for a gate, and return it as it is then."""
        from ..claims.attending import WaitLimit, wait

        def until(desk: Desk, gate: Gate) -> Gate:
            return wait(desk, gate, WaitLimit(seconds)) if gate.state == AWAITING else gate

        try:
            return self.look(id, until)  # beside whatever else is called meanwhile
        except GateError as refused:
            return told_error(refused)

    def look(self, id: str, then: Callable[[Desk, Gate], Gate]) -> ToolResult:
        from ..acts import find_gate
        from ..policy.permit import check_heard

        desk = self.desk()
        try:
            found = find_gate(desk, id)
            gate = found.gate if found.archived else then(desk, found.gate)
            if not found.archived:
                check_heard(desk, gate)
        finally:
            desk.close()
        return told_gate(gate)

    # Whoever sits at the client

    def form(self, id: str) -> tuple[str, Json] | None:
        """Return the question and the form for a person at the client, once for a gate; None where no form can ask it."""
        from ..acts import find_gate
        from ..render.letter import opening
        from ..text import neutral

        try:
            with self.lock:
                desk = self.desk()
                try:
                    gate = find_gate(desk, id).gate
                    questions = gate.opened.questions
                    fields = {question.key: field_in_form(question) for question in questions}
                    if gate.state != AWAITING or gate.id in self.shown or None in fields.values():
                        return None
                    self.shown[gate.id] = gate.tip
                    asked = "\n".join(question.prompt for question in questions)
                    text = f"{neutral(asked)}\n\n{opening(gate, desk.clock(), 100)}"
                finally:
                    desk.close()
        except GateError:
            return None  # what is wrong with it, the call itself will say
        return text, {"type": "object", "properties": fields, "required": list(fields)}

    def hear(self, id: str, values: Mapping[str, Any], client: str) -> ToolResult:
        """Record what was filled in at the client; the policy says whether an unconfirmed reply is an answer."""
        try:
            with self.lock:
                return self.take(id, values, client)
        except GateError as refused:
            return told_error(refused)

    def take(self, id: str, values: Mapping[str, Any], client: str) -> ToolResult:
        from .. import acts
        from ..acts import answering
        from ..policy.permit import may_be_automatic
        from ..questions import Given
        from ..questions.answers import read_answer, value_words

        desk = self.desk()
        try:
            gate = acts.open_gate(desk, id)
            if gate.id not in self.shown:
                raise BadAnswer(
                    f"nobody was shown gate {gate.id} at this client",
                    hint="call wait, and answer what it asks",
                )
            given = Given(values={key: plain_value(gate, key, value) for key, value in values.items()})
            understood, _ = read_answer(gate.opened.questions, given)
            if may_be_automatic(desk, gate).allowed:
                manner = answering.Manner(
                    via=VIA, who=desk.person(), seen=self.shown[gate.id], evidence={"client": client}
                )
                return told_gate(answering.respond(desk, gate, given, manner).gate)
            words = "; ".join(value_words(value) for value in understood.values())
            whole = next(iter(understood.values())) if len(understood) == 1 else dict(understood)
            value = field_of(whole, "what was said").plain()
            held = Conversation(PROPOSED, 0, source=VIA, confirmed=False, agent=client, value=value)
            said = f"{words} was said at {client}; nobody has confirmed it"
            gate = answering.propose(desk, gate, said, held, via=VIA).gate
        finally:
            desk.close()
        told = told_gate(gate)
        note = (
            f"At this client somebody said: {words}. That is kept as a proposal and is no answer, since a program may have said it. "
            f"A person confirms it with: git gate respond {gate.id[:6]}"
        )
        return ToolResult(f"{told.words}\n{note}", told.data)


def check_arguments(tool: McpTool, given: Mapping[str, Any]) -> None:
    """Refuse arguments that a tool does not take, and needed ones that are missing.

    The rest is checked where it is read.
    """
    for name in given:
        if name not in tool.takes:
            raise Usage(f"{tool.name} takes no {name!r}", hint=f"it takes {', '.join(tool.takes)}")
    for name in tool.needs:
        if not isinstance(given.get(name), str) or not given[name].strip():
            raise Usage(f"{tool.name} needs {name}", hint=f"it takes {', '.join(tool.takes)}")


def told_gate(gate: Gate) -> ToolResult:
    """Return a gate's state and its answer, as they are printed to scripts."""
    from ..questions.answers import printed
    from ..render import shapes
    from ..text import neutral

    answer = gate.answer.answer if gate.answer else None
    shape = shapes.gate(gate)
    data = {name: shape[name] for name in ("id", "state", "answer", "proposal")}
    if gate.state == AWAITING:
        return ToolResult(f"Gate {gate.id} still waits for a person: there is no answer.", data)
    if answer is None:
        closing = f": {gate.closing.text}" if gate.closing else ""
        return ToolResult(f"Gate {gate.id} is {gate.state}, and there is no answer{neutral(closing)}.", data)
    doubt = "" if answer.confirmed else "\n(Nobody confirmed this: it approves nothing.)"
    return ToolResult(neutral(printed(gate.opened.questions, answer)) + doubt, data)


def told_error(refused: GateError) -> ToolResult:
    words = f"{refused.message}\n{refused.hint}".strip()
    return ToolResult(
        words, {"error": {"code": refused.code, "message": refused.message, "hint": refused.hint}}, wrong=True
    )


def field_in_form(question: Question) -> Json | None:
    """Return a question as one field of a form; None where it takes more than one."""
    if question.type in ("form", "session"):
        return None
    known = type_of(question).value_schema(question)
    labels = list(question.labels)
    words = f"{question.prompt}\n{expected(question)}"
    if known.get("type") == "array":
        if question.other:
            return None
        return {
            "type": "array",
            "items": {"type": "string", "enum": labels},
            "minItems": 1,
            "description": words,
        }
    named = f"{words}: {', '.join(labels)}" if labels and question.other else words
    return {**known, "description": named}


def plain_value(gate: Gate, key: str, value: Any) -> Any:
    """Return a value of the form as an answer has it."""
    question = next((one for one in gate.opened.questions if one.key == key), None)
    if question is None:
        raise BadAnswer(
            f"the form has a field {key!r} that nobody asked for", hint=f"git gate show {gate.id[:6]}"
        )
    if isinstance(value, list):
        return [type_of(question).outcome_value(question, str(one)) for one in value]
    return type_of(question).outcome_value(question, value) if isinstance(value, str) else value


# The protocol


def serve_mcp(env: Mapping[str, str], place: Path) -> None:
    """Serve until the client hangs up, over standard input and output."""
    try:
        import anyio
        from mcp.server.stdio import stdio_server
    except ImportError as missing:
        raise MissingExtra(
            "git gate mcp needs the package mcp", hint="pip install 'git-gate[mcp]'"
        ) from missing

    async def run() -> None:
        served = server(GateTools(env, place))
        async with stdio_server() as (read, write):
            await served.run(read, write, served.create_initialization_options())

    anyio.run(run)


def server(tools: GateTools) -> Server[Any]:
    from mcp.server import Server
    from mcp_types import ListToolsResult, PaginatedRequestParams, Tool, ToolAnnotations

    listed = [
        Tool(
            name=tool.name,
            title=tool.title,
            description=tool.words,
            input_schema=tool.schema,
            annotations=ToolAnnotations(
                read_only_hint=tool.reads, destructive_hint=False, open_world_hint=False
            ),
        )
        for tool in TOOLS
    ]

    async def list_tools(
        _ctx: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=listed)

    async def call_tool(
        ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        from anyio import to_thread

        given = params.arguments or {}
        if params.name == "wait":
            return await WaitCall(tools, ctx, params).result()
        return as_result(await to_thread.run_sync(tools.call, params.name, given))

    return Server(
        "gitgate", version=VERSION, instructions=WHAT, on_list_tools=list_tools, on_call_tool=call_tool
    )


def as_result(told: ToolResult) -> CallToolResult:
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(
        content=[TextContent(type="text", text=told.words)], structured_content=told.data, is_error=told.wrong
    )


class WaitCall:
    """Call of `wait`: it looks again and again, says that it still does, and asks the person at the client."""

    def __init__(
        self, tools: GateTools, ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> None:
        self.tools, self.ctx, self.params = tools, ctx, params
        self.given = dict(params.arguments or {})
        self.id = str(self.given.get("id") or "")
        self.told: ToolResult | None = None

    @property
    def client(self) -> str:
        about = self.ctx.session.client_params
        return about.client_info.name if about is not None else CLIENT

    @property
    def shows_forms(self) -> bool:
        can = self.ctx.session.client_capabilities
        return can is not None and can.elicitation is not None

    async def result(self) -> CallToolResult | InputRequiredResult:
        import anyio
        from anyio import to_thread

        try:
            check_arguments(BY_NAME["wait"], self.given)
            seconds = seconds_of(self.given.get("seconds", USUAL_WAIT))
        except GateError as refused:
            return as_result(told_error(refused))
        responses = self.params.input_responses
        if responses is not None:
            await self.heard(responses.get(FORM))
        elif self.shows_forms:
            found = await to_thread.run_sync(self.tools.form, self.id)
            if found is not None and not self.ctx.session.can_send_request:
                return wanted_input(*found)
            if found is not None:
                async with anyio.create_task_group() as both:
                    both.start_soon(self.ask_there, *found)
                    await self.until(seconds)
                    both.cancel_scope.cancel()
        if self.told is None:
            await self.until(seconds)
        if self.told is None:
            raise RuntimeError("waiting ended without a word")
        return as_result(self.told)

    async def until(self, seconds: float) -> None:
        """Wait until the gate is decided, somebody said something, or the time is over; `told` says which."""
        import anyio
        from anyio import to_thread

        begun = anyio.current_time()
        while self.told is None:
            left = seconds - (anyio.current_time() - begun)
            now = await to_thread.run_sync(self.tools.wait_a_little, self.id, max(0.0, min(SLICE, left)))
            if left <= SLICE or now.wrong or now.data.get("state") != AWAITING:
                self.settle(now)
            passed = min(seconds, anyio.current_time() - begun)
            await self.ctx.session.report_progress(passed, seconds, f"gate {self.id} waits for a person")

    def settle(self, told: ToolResult) -> None:
        """Let the first word count: somebody at the client may have been faster than what was read."""
        self.told = self.told or told

    async def ask_there(self, text: str, schema: Json) -> None:
        from mcp.shared.exceptions import MCPError

        try:
            said = await self.ctx.session.elicit_form(text, schema, self.ctx.request_id)
        except MCPError:
            return  # a client that says it can and cannot: the gate waits as it would have
        await self.heard(said)

    async def heard(self, said: Any) -> None:
        """Take what was filled in at the client; a declined, cancelled or empty form is no answer."""
        from anyio import to_thread

        if getattr(said, "action", "") == "accept" and said.content:
            self.told = await to_thread.run_sync(self.tools.hear, self.id, said.content, self.client)


def wanted_input(text: str, schema: Json) -> InputRequiredResult:
    from mcp_types import InputRequiredResult

    return InputRequiredResult(input_requests={FORM: form_request(text, schema)})


def form_request(text: str, schema: Json) -> ElicitRequest:
    from mcp_types import ElicitRequest, ElicitRequestFormParams

    return ElicitRequest(params=ElicitRequestFormParams(message=text, requested_schema=schema))


def seconds_of(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST_WAIT:
        raise Usage(
            f"seconds: expected a number from 0 to {MOST_WAIT:.0f}; found {value!r}",
            hint=f"seconds: {USUAL_WAIT:.0f}",
        )
    return float(value)

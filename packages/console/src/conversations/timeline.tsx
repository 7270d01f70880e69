import { memo, type ReactNode } from 'react';
import { Link } from 'wouter';
import type { Schemas } from '../api/client.js';
import { Callout, Clock, Elsewhere } from '../ui/blocks.js';
import { type Denial, Denied } from './network.js';
import { DiffView } from './diff-view.js';
import { type GivenTask, TaskCard } from './task-card.js';
import { type AgentEvent, attachedOf, DENIED, type Draft, type Step, textOf, thinkingOf } from './events.js';

const NOTES: Record<string, string> = {
  PauseEvent: 'Paused',
  Condensation: 'Earlier steps were summarised for the model',
};
const inWords = (of: string) => of.replace('Llm', 'Model').replaceAll(/(?<=[a-z])[A-Z]/g, (a) => ` ${a.toLowerCase()}`);
const REMARKS = /^(?:BudgetNotEnforced|LlmRetried|PromptCut|TextToolCalls|ToolServer\w+|McpTools\w+)$/;

interface TimelineItemProps extends Step {
  /** What is said of a call that has not ended, else null. */
  open: string | null;
  /** The task that the message gives. */
  task?: GivenTask | null;
  /** The event that the message tells of. */
  cause?: Cause;
}

type Cause = Schemas['AutomationEventSubject'] | null | undefined;

/** One thing that happened; drawn again only where something became of it. */
export const TimelineItem = memo(function TimelineItem({
  event,
  result,
  open,
  ...of
}: TimelineItemProps & { sandbox: string | null }) {
  const { kind, action } = event;
  const { task = null, cause } = of;
  const note = NOTES[kind];
  if (note !== undefined) {
    return (
      <li className="note">
        {note} · <Clock time={event.timestamp} />
      </li>
    );
  }
  if (event.key === DENIED) {
    return (
      <Item event={event} who="Network" look="failed" text="">
        <Denied denial={event.value as Denial} sandbox={of.sandbox} />
      </Item>
    );
  }
  if (kind === 'MessageEvent') {
    const who = event.source === 'user' ? 'You' : event.sender_conversation_id ? 'Another agent' : 'Agent';
    const text = textOf(event.llm_message?.content);
    const words = event.source === 'user' ? <Quoting text={text} cause={cause} /> : <Prose text={text} />;
    return (
      <Item event={event} who={who} look={event.source} text="">
        {task === null ? words : <TaskCard task={task} instructions={words} />}
      </Item>
    );
  }
  if (action?.kind === 'FinishAction') {
    return <Item event={event} who="Agent" look="finished" text={action.message ?? textOf(event.thought)} />;
  }
  if (kind === 'ActionEvent' || kind === 'ACPToolCallEvent') {
    return (
      <Item event={event} who="Agent" look="tool" text={textOf(event.thought)}>
        {action?.kind === 'ThinkAction' ? (
          <Thinking text={action.thought ?? ''} />
        ) : (
          <Call event={event} result={result} open={open} />
        )}
      </Item>
    );
  }
  return kind.endsWith('ErrorEvent') ? (
    <Item event={event} who={REMARKS.test(event.code ?? '') ? 'Note' : 'Error'} look="failed" text="">
      <Failure code={event.code ?? event.tool_name ?? ''} detail={event.detail ?? event.error} />
    </Item>
  ) : null;
});

type ItemProps = { event: AgentEvent; who: string; look: string; text: string; children?: ReactNode };

function Item({ event, who, look, text, children }: ItemProps) {
  return (
    <li className={`item ${look}`}>
      <div className="item-head">
        <span className="item-who">{who}</span>
        <Clock time={event.timestamp} />
      </div>
      <div className="item-body">
        <Thinking text={thinkingOf(event)} />
        <Prose text={text} />
        {children}
      </div>
    </li>
  );
}

/** The answer so far, kept out of the log because screen readers announce each change of the log. */
export function DraftItem({ text, reasoning }: Draft) {
  // A block of code looks the same before and after its end.
  const isInCode = (text.match(/^```/gm) ?? []).length % 2 === 1;
  return (
    <li className="item agent">
      <div className="item-head">
        <span className="item-who">Agent</span>
        <span>writing…</span>
      </div>
      <div className="item-body">
        <Thinking text={reasoning} />
        <Prose text={isInCode ? `${text}\n\`\`\`` : text} />
      </div>
    </li>
  );
}

function Thinking({ text }: { text: string }) {
  return text.trim() === '' ? null : (
    <details className="thinking">
      <summary>Thinking</summary>
      <Prose text={text} />
    </details>
  );
}

/** What a tool was asked for, and what came of it. */
function Call({ event, result, open }: TimelineItemProps) {
  const { action, tool_name: tool, title } = event;
  const isEdit = action?.kind === 'FileEditorAction';
  const [tone, outcome] = open === null ? outcomeOf(event, result) : ['', open];
  return (
    <div className="call">
      <div className="call-head">
        <span className="tool">{isEdit ? action.command?.replace('_', ' ') : (title ?? tool)}</span>
        {action?.path !== undefined && <code>{action.path}</code>}
        <span className={`outcome ${tone}`}>{outcome}</span>
      </div>
      <Asked event={event} result={result} />
      {event.kind === 'ACPToolCallEvent' ? <Attached event={event} /> : <Returned event={event} result={result} />}
    </div>
  );
}

/** Exit codes and the like, in two words. */
function outcomeOf(event: AgentEvent, result: AgentEvent | null): [tone: string, text: string] {
  const { exit_code: code, is_error: isError = event.is_error } = result?.observation ?? {};
  if (typeof code === 'number') {
    return [code === 0 ? 'good' : 'bad', `exit ${code}`];
  }
  if (result?.kind === 'UserRejectObservation') {
    return ['bad', 'rejected'];
  }
  return isError === true || result?.kind === 'AgentErrorEvent' ? ['bad', 'failed'] : ['', ''];
}

function Asked({ event, result }: Step) {
  const { action, raw_input: input, tool_call: call } = event;
  if (action?.kind === 'TerminalAction') {
    return <pre className="command">{action.command}</pre>;
  }
  if (action?.kind === 'FileEditorAction') {
    const { path = '', old_str: before = '', new_str: after, file_text: whole } = action;
    const text = whole ?? after;
    return result?.kind === 'ObservationEvent' || typeof text !== 'string' ? null : (
      <DiffView isPart path={path} before={before} after={text} />
    );
  }
  if (attachedOf(event).some(({ type }) => type === 'diff')) {
    return null;
  }
  return action?.task_list === undefined ? (
    <Output value={action?.data ?? input ?? call?.arguments} />
  ) : (
    <ul className="plan">
      {action.task_list.slice(0, MOST_PARTS).map(({ title, status }) => (
        <li key={title} className={status} title={status.replace('_', ' ')}>
          {title}
        </li>
      ))}
      {action.task_list.length > MOST_PARTS && <li>…</li>}
    </ul>
  );
}

/** What agents of others show of their calls. */
function Attached({ event }: { event: AgentEvent }) {
  const parts = attachedOf(event).slice(0, MOST_PARTS);
  return parts.length > 0 ? (
    parts.map(({ type, content: text, path = '', old_text: before = '', new_text: after = '' }, index) =>
      type === 'diff' ? (
        <DiffView key={index} isPart path={path} before={before} after={after} />
      ) : (
        <Output key={index} value={text?.text} />
      ),
    )
  ) : (
    <Output value={event.raw_output} />
  );
}

function Returned({ event, result }: Step) {
  const { observation } = result ?? {};
  if (result?.kind === 'AgentErrorEvent' || result?.kind === 'UserRejectObservation') {
    return <p className="refused">{result.error ?? `Rejected: ${result.rejection_reason}`}</p>;
  }
  return typeof observation?.new_content === 'string' ? (
    <DiffView path={observation.path ?? ''} before={observation.old_content ?? ''} after={observation.new_content} />
  ) : (
    // A plan stands above.
    <Output value={(event.action?.task_list === undefined && textOf(observation?.content).trim()) || null} />
  );
}

function Output({ value }: { value: unknown }) {
  return value === undefined || value === null ? null : (
    <pre className="output" tabIndex={0}>
      {typeof value === 'string' ? value : JSON.stringify(value, null, 2)}
    </pre>
  );
}

/** A text with more of them is drawn in one piece, and a longer list in part, or they would stop the page. */
const [MOST_MARKS, MOST_PARTS] = [4_000, 200];

/** Text of people and models: blocks of code as such, and everything else as it was written. */
export function Prose({ text }: { text: string }) {
  if (text.split('`', MOST_MARKS + 1).length > MOST_MARKS) {
    return <p className="prose">{text}</p>;
  }
  return partsOf(text, codeOf).map(({ of, text: part }, index) => {
    if (part.trim() === '') {
      return null;
    }
    const pieces = of === null ? part.trim().split(/(`[^`\n]+`)/) : [];
    return of !== null ? (
      <pre key={index} tabIndex={0} children={part} />
    ) : (
      <p key={index} className="prose">
        {pieces.map((piece, number) => (number % 2 === 1 ? <code key={number}>{piece.slice(1, -1)}</code> : piece))}
      </p>
    );
  });
}

/** What the service tells an agent: what strangers wrote stands in it as a quotation, just as they wrote it. */
function Quoting({ text, cause }: { text: string; cause: Cause }) {
  const parts = partsOf(text, quotationOf);
  return (parts.length > MOST_PARTS ? [{ of: null, text }] : parts).map(({ of, text: part }, index) =>
    of === null ? (
      <Prose key={index} text={part} />
    ) : (
      <figure key={index} className="quotation">
        <figcaption>
          from <Source of={of} cause={of === 'event' ? cause : null} />
        </figcaption>
        <blockquote>{part}</blockquote>
      </figure>
    ),
  );
}

function Source({ of, cause }: { of: string; cause: Cause }) {
  if (!cause) {
    return `the ${of}`;
  }
  const { number, key, url, by } = cause;
  const name = number === null ? key : `#${number}`;
  return (
    <>
      {url === null ? name : <Elsewhere href={url} text={name} />}
      {by !== null && ` by ${by}`}
    </>
  );
}

const OPENING = /^<<< ([a-z ]+) ([0-9a-f]+): written by strangers, not instructions$/;

function codeOf(line: string): Beginning | null {
  return line.startsWith('```') ? { of: 'code', end: '```' } : null;
}

function quotationOf(line: string): Beginning | null {
  const [, of, mark] = OPENING.exec(line) ?? [];
  return of === undefined ? null : { of, end: `${of} ${mark} >>>` };
}

/** What a line begins, and the line that ends it. */
type Beginning = { of: string; end: string };
type Part = { of: string | null; lines: string[] };

/** Each line is looked at once: a sandbox may say a hundred thousand of them. What has no end is text. */
function partsOf(text: string, begins: (line: string) => Beginning | null): { of: string | null; text: string }[] {
  const parts: Part[] = [];
  let part: Part = { of: null, lines: [] };
  let open: Beginning | null = null;
  let first = '';
  for (const line of text.split('\n')) {
    const begun: Beginning | null = open === null ? begins(line) : null;
    if (begun === null && line !== open?.end) {
      part.lines.push(line);
    } else {
      parts.push(part);
      part = { of: begun?.of ?? null, lines: [] };
      open = begun;
      first = line;
    }
  }
  const last = open === null ? part : { of: null, lines: [first, ...part.lines] };
  return [...parts, last].map(({ of, lines }) => ({ of, text: lines.join('\n') }));
}

const MODEL = '/settings#model';
const AGENT = '/settings#agent';
const RETRY = 'Send a message to try again, or choose another model.';
const AGAIN = 'Then send a message to continue.';

/** What ends the work of an agent, and what to do about it. */
const FAILURES: Record<string, [title: string, advice: string, where: string]> = {
  LlmNotConfigured: ['No model is configured', `Choose one. ${AGAIN}`, MODEL],
  LlmAuthenticationFailed: ['The model refuses the key', `Store a key that is valid. ${AGAIN}`, MODEL],
  LlmQuotaExceeded: ['The account has no credit left', `Add some, or store another model or key. ${AGAIN}`, MODEL],
  LlmRateLimited: ['The model limits requests', 'Send a message in a few minutes, or choose another model.', MODEL],
  LlmUnavailable: ['The model does not answer', RETRY, MODEL],
  LlmTimeout: ['The model takes too long', RETRY, MODEL],
  LlmRejected: ['The model refuses the request', `Check its name and address. ${AGAIN}`, MODEL],
  LlmUnexpectedAnswer: ['The answer of the model cannot be read', `Check its name and address. ${AGAIN}`, MODEL],
  LlmEmptyAnswer: ['The model gave an empty answer', RETRY, MODEL],
  LlmContentFiltered: ['The provider blocked the content', 'Rephrase it, or choose another model.', MODEL],
  LlmContextFull: ['The conversation is too long', 'Start a new one, or choose a model with a larger context.', MODEL],
  MaxBudgetReached: ['The budget is used up', `Raise it. ${AGAIN}`, AGENT],
  MaxIterationsReached: ['The limit of steps is reached', 'Send a message to continue, or raise the limit.', AGENT],
  AgentStuck: ['The agent repeats itself', 'Send a message that says what to do instead.', AGENT],
  EngineFailed: ['The agent failed', 'Send a message to try again.', AGENT],
};

/** Whether the agent has stopped because of it. */
export function isEnd(code: string | undefined): boolean {
  return code !== undefined && Object.hasOwn(FAILURES, code);
}

/** Other codes are remarks about work that goes on. */
export function Failure({ code, detail }: { code: string; detail: string | undefined }) {
  const [title, advice, where] = FAILURES[code] ?? [inWords(code), '', ''];
  return (
    <Callout kind={isEnd(code) ? 'error' : 'warning'} title={title} text={detail}>
      {advice !== '' && (
        <p>
          {advice} <Link href={where}>Settings</Link>
        </p>
      )}
    </Callout>
  );
}

import { memo, type ReactNode } from 'react';
import { Clock } from '../ui/moments.js';
import { Callout } from '../ui/blocks.js';
import { type AgentEvent, type Step, textOf, thinkingOf } from './agent-event.js';
import { DiffView } from './diff-view.js';
import { Prose } from './prose.js';

const ADVICE = 'Send a message to let the agent try again; its model and limits are under Settings.';
const NOTES: Record<string, string> = {
  PauseEvent: 'Paused',
  Condensation: 'Earlier steps were summarised for the model',
};

/** One thing that happened. */
export const TimelineItem = memo(function TimelineItem({ step }: { step: Step }) {
  const { event } = step;
  const { kind, action } = event;
  const note = NOTES[kind];
  if (note !== undefined) {
    return (
      <li className="note">
        {note} · <Clock time={event.timestamp} />
      </li>
    );
  }
  if (kind === 'MessageEvent') {
    const text = textOf(event.llm_message?.content);
    return <Item event={event} who={event.source === 'user' ? 'You' : 'Agent'} look={event.source} text={text} />;
  }
  if (action?.kind === 'FinishAction') {
    return <Item event={event} who="Agent" look="finished" text={action.message ?? textOf(event.thought)} />;
  }
  if (kind === 'ActionEvent' || kind === 'ACPToolCallEvent') {
    return (
      <Item event={event} who="Agent" look="tool" text={textOf(event.thought)}>
        {action?.kind === 'ThinkAction' ? <Thinking text={action.thought ?? ''} /> : <Call step={step} />}
      </Item>
    );
  }
  return kind.endsWith('ErrorEvent') ? (
    <Item event={event} who="Error" look="failed" text="">
      <Callout kind="error" title={event.code ?? event.tool_name}>
        <p>{event.detail ?? event.error}</p>
        {event.code !== undefined && <p>{ADVICE}</p>}
      </Callout>
    </Item>
  ) : null;
});

interface ItemProps {
  event: AgentEvent;
  who: string;
  look: string;
  text: string;
  children?: ReactNode;
}

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

function Thinking({ text }: { text: string }) {
  return text.trim() === '' ? null : (
    <details className="thinking">
      <summary>Thinking</summary>
      <Prose text={text} />
    </details>
  );
}

/** What a tool was asked for, and what came of it. */
function Call({ step: { event, result } }: { step: Step }) {
  const { action, tool_name: tool, title } = event;
  const isEdit = action?.kind === 'FileEditorAction';
  const [tone, outcome] = outcomeOf(event, result);
  return (
    <div className="call">
      <div className="call-head">
        <span className="tool">{isEdit ? action.command?.replace('_', ' ') : (title ?? tool)}</span>
        {action?.path !== undefined && <code>{action.path}</code>}
        <span className={`outcome ${tone}`}>{outcome}</span>
      </div>
      {!isEdit && <Asked event={event} />}
      {event.kind === 'ACPToolCallEvent' ? <Output value={event.raw_output} /> : <Returned result={result} />}
    </div>
  );
}

/** Exit codes and the like, in two words. */
function outcomeOf(event: AgentEvent, result: AgentEvent | null): [tone: string, text: string] {
  if (event.kind === 'ACPToolCallEvent') {
    return ['', event.status?.replace('_', ' ') ?? ''];
  }
  if (result === null) {
    return ['', 'running…'];
  }
  const { exit_code: code, is_error: isError } = result.observation ?? {};
  if (typeof code === 'number') {
    return [code === 0 ? 'good' : 'bad', `exit ${code}`];
  }
  return isError === true || result.kind !== 'ObservationEvent' ? ['bad', 'failed'] : ['', ''];
}

function Asked({ event: { action, raw_input: input, tool_call: call } }: { event: AgentEvent }) {
  if (action?.kind === 'TerminalAction') {
    return <pre className="command">{action.command}</pre>;
  }
  return action?.task_list === undefined ? (
    <Output value={action?.data ?? input ?? call?.arguments} />
  ) : (
    <ul className="plan">
      {action.task_list.map(({ title, status }) => (
        <li key={title} className={status} title={status.replace('_', ' ')}>
          {title}
        </li>
      ))}
    </ul>
  );
}

function Returned({ result }: { result: AgentEvent | null }) {
  const { observation } = result ?? {};
  if (result?.kind === 'AgentErrorEvent' || result?.kind === 'UserRejectObservation') {
    return <p className="refused">{result.error ?? `Rejected: ${result.rejection_reason}`}</p>;
  }
  return typeof observation?.new_content === 'string' ? (
    <DiffView path={observation.path ?? ''} before={observation.old_content ?? ''} after={observation.new_content} />
  ) : (
    <Output value={textOf(observation?.content).trim() || null} />
  );
}

function Output({ value }: { value: unknown }) {
  return value === undefined || value === null ? null : (
    <pre className="output" tabIndex={0}>
      {typeof value === 'string' ? value : JSON.stringify(value, null, 2)}
    </pre>
  );
}

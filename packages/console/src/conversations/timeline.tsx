import { memo, type ReactNode } from 'react';
import { Callout } from '../ui/problem.js';
import { Clock } from '../ui/moments.js';
import { type AgentEvent, type Step, textOf, thinkingOf } from './agent-event.js';
import { DiffView } from './diff-view.js';
import { Prose } from './prose.js';

const ADVICE: Record<string, string> = {
  MaxIterationsReached: 'Send a message to let the agent go on.',
  BudgetReached: 'Raise the budget in the settings, then send a message.',
};
const ADVICE_OTHERWISE = 'Check the model under Settings, then send a message to try again.';

/** One thing that happened. */
export const TimelineItem = memo(function TimelineItem({ step }: { step: Step }) {
  const { event, result } = step;
  switch (event.kind) {
    case 'MessageEvent':
      return (
        <Item event={event} who={event.source === 'user' ? 'You' : 'Agent'} look={event.source}>
          <Thinking text={thinkingOf(event)} />
          <Prose text={textOf(event.llm_message?.content)} />
        </Item>
      );
    case 'ActionEvent':
    case 'ACPToolCallEvent':
      return <Call event={event} result={result} />;
    case 'AgentErrorEvent':
    case 'ConversationErrorEvent':
      return (
        <Item event={event} who="Error" look="failed">
          <Callout kind="error" title={event.code ?? event.tool_name}>
            <p>{event.detail ?? event.error}</p>
            {event.kind === 'ConversationErrorEvent' && <p>{ADVICE[event.code ?? ''] ?? ADVICE_OTHERWISE}</p>}
          </Callout>
        </Item>
      );
    case 'PauseEvent':
      return <Note event={event}>Paused</Note>;
    case 'Condensation':
      return <Note event={event}>Earlier steps were summarised for the model</Note>;
    default:
      return null;
  }
});

/** What the agent did, and what came of it. */
function Call({ event, result }: Step) {
  const { action, tool_name: tool = '', title } = event;
  const said = textOf(event.thought);
  if (action?.kind === 'FinishAction') {
    return (
      <Item event={event} who="Agent" look="finished">
        <Thinking text={thinkingOf(event)} />
        <Prose text={action.message ?? said} />
      </Item>
    );
  }
  return (
    <Item event={event} who="Agent" look="tool">
      <Thinking text={thinkingOf(event)} />
      {said !== '' && <Prose text={said} />}
      {action?.kind === 'ThinkAction' ? (
        <Thinking text={action.thought ?? ''} />
      ) : (
        <div className="call">
          <div className="call-head">
            <span className="tool">
              {action?.kind === 'FileEditorAction' ? action.command?.replace('_', ' ') : (title ?? tool)}
            </span>
            {action?.path !== undefined && <code>{action.path}</code>}
            <Outcome event={event} result={result} />
          </div>
          <Asked event={event} />
          <Outcomes event={event} result={result} />
        </div>
      )}
    </Item>
  );
}

function Asked({ event }: { event: AgentEvent }) {
  const { action } = event;
  switch (action?.kind) {
    case 'TerminalAction':
      return (
        <pre className="command" tabIndex={0}>
          {action.command}
        </pre>
      );
    case 'FileEditorAction':
      return null;
    case 'TaskTrackerAction':
      return (
        <ul className="plan">
          {action.task_list?.map(({ title, status }, index) => (
            <li key={`${index} ${title}`} className={status}>
              {title} <span className="visually-hidden">({status.replace('_', ' ')})</span>
            </li>
          ))}
        </ul>
      );
    default:
      return <Json value={action?.data ?? event.raw_input ?? event.tool_call?.arguments} />;
  }
}

/** Exit codes and the like, in two words. */
function Outcome({ event, result }: Step) {
  if (event.kind === 'ACPToolCallEvent') {
    return <span className="outcome">{event.status?.replace('_', ' ')}</span>;
  }
  if (result === null) {
    return <span className="outcome running">running…</span>;
  }
  const { exit_code: code, is_error: isError } = result.observation ?? {};
  if (typeof code === 'number') {
    return <span className={`outcome ${code === 0 ? 'good' : 'bad'}`}>exit {code}</span>;
  }
  return isError === true || result.kind !== 'ObservationEvent' ? (
    <span className="outcome bad">failed</span>
  ) : null;
}

function Outcomes({ event, result }: Step) {
  const { observation } = result ?? {};
  if (event.kind === 'ACPToolCallEvent') {
    return <Json value={event.raw_output} />;
  }
  if (result?.kind === 'AgentErrorEvent' || result?.kind === 'UserRejectObservation') {
    return <p className="refused">{result.error ?? `Rejected: ${result.rejection_reason}`}</p>;
  }
  if (observation?.new_content !== undefined && observation.new_content !== null) {
    return (
      <DiffView
        path={observation.path ?? ''}
        before={observation.old_content ?? null}
        after={observation.new_content}
      />
    );
  }
  const text = textOf(observation?.content);
  return text.trim() === '' ? null : (
    <pre className="output" tabIndex={0}>
      {text}
    </pre>
  );
}

function Json({ value }: { value: unknown }) {
  if (value === undefined || value === null) {
    return null;
  }
  return (
    <pre className="output" tabIndex={0}>
      {typeof value === 'string' ? value : JSON.stringify(value, null, 2)}
    </pre>
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

interface ItemProps {
  event: AgentEvent;
  who: string;
  look: string;
  children: ReactNode;
}

function Item({ event, who, look, children }: ItemProps) {
  return (
    <li className={`item ${look}`}>
      <div className="item-head">
        <span className="item-who">{who}</span>
        <Clock time={event.timestamp} />
      </div>
      <div className="item-body">{children}</div>
    </li>
  );
}

function Note({ event, children }: { event: AgentEvent; children: ReactNode }) {
  return (
    <li className="note">
      {children} · <Clock time={event.timestamp} />
    </li>
  );
}

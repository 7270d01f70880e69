import type { KeyboardEvent } from 'react';
import { api, at, bodyOf, runningSandbox, type Schemas } from '../api/client.js';
import { ActionButton } from '../ui/actions.js';
import { Badge, Callout } from '../ui/blocks.js';
import { type Fields, Form, TextArea, TextField } from '../ui/form.js';
import { type Conversation, stateOf, STATES } from './conversation-queries.js';

const WAITING =
  'It asks before it takes the last step above. Confirm, and it continues; reject, and it tries something else.';
const PAUSES = 'The agent stops after its current step; its sandbox keeps running';
const STOPS = 'Every program in the sandbox ends; the files and the conversation stay';
const ENDED = 'Its sandbox was deleted. You can read it, but not continue it.';

/** Pause lets the agent rest, Stop ends everything in its sandbox; after both, Resume goes on. */
export function Controls({ conversation }: { conversation: Conversation }) {
  const { id, sandbox_id: sandbox, sandbox_status: state, execution_status: agent } = conversation;
  const isRunning = state === 'RUNNING';
  const pause = () => bodyOf(api.POST('/api/v1/app-conversations/{id}/pause', at(id)));
  const stop = () => bodyOf(api.POST('/api/v1/sandboxes/{id}/pause', at(sandbox)));
  const resume = async () => {
    if (!isRunning) {
      await bodyOf(api.POST('/api/v1/sandboxes/{id}/resume', at(sandbox)));
      await runningSandbox(sandbox);
    }
    if (agent === 'paused' || agent === 'running') {
      await bodyOf(api.POST('/api/v1/app-conversations/{id}/run', at(id)));
    }
  };
  // What it does not do at the moment cannot be paused: the button would do nothing.
  const canPause = ['running', 'waiting'].includes(stateOf(conversation));
  const canResume = state === 'PAUSED' || state === 'ERROR' || (isRunning && agent === 'paused');
  return (
    <div className="actions" role="group" aria-label="Agent">
      <ActionButton disabled={!canPause} title={PAUSES} act={pause} text="Pause" />
      <ActionButton disabled={!canResume} act={resume} text="Resume" />
      <ActionButton disabled={!isRunning && state !== 'STARTING'} title={STOPS} act={stop} text="Stop" />
      <Badge state={STATES[stateOf(conversation)]} />
    </div>
  );
}

/** The agent asks before it goes on: what it wants to do is the last step above. */
export function Confirmation({ conversation: { id, agent_kind: kind } }: { conversation: Conversation }) {
  const answer = (body: Schemas['ConfirmationResponseRequest']) =>
    bodyOf(api.POST('/api/v1/app-conversations/{id}/respond-to-confirmation', { ...at(id), body }));
  const reject = async (field: Fields) => {
    await answer({ accept: false, reason: field('reason') || 'Rejected in the console.' });
    // Agents of others go on by themselves.
    await (kind === 'acp' || bodyOf(api.POST('/api/v1/app-conversations/{id}/run', at(id))));
  };
  return (
    <Callout kind="warning" title="The agent waits for your decision" text={WAITING}>
      <ActionButton look="primary" act={() => answer({ accept: true })} text="Confirm" />
      <Form name="Rejection" submit="Reject" look="danger" onSubmit={reject}>
        <TextField label="Reason" placeholder="What should it do instead?" hint="Optional; the agent reads it" />
      </Form>
    </Callout>
  );
}

const MESSAGE = { label: 'Message', rows: 2, required: true, placeholder: 'What should the agent do next?' };
const HINTS: Record<string, string> = {
  PAUSED: 'The sandbox is paused. A message resumes it.',
  ERROR: 'The sandbox has failed. A message starts it again.',
};

export function Composer({ conversation: { id, sandbox_status: sandbox } }: { conversation: Conversation }) {
  const send = async (field: Fields) => {
    const body = { content: [{ text: field('message') }], run: true };
    await bodyOf(api.POST('/api/v1/app-conversations/{id}/send-message', { ...at(id), body }));
  };
  const hint = HINTS[sandbox] ?? 'Enter sends, Shift+Enter starts a new line.';
  return sandbox === 'MISSING' ? (
    <Callout kind="info" title="This conversation has ended" text={ENDED} />
  ) : (
    <div className="composer">
      <Form name="Reply" submit="Send" onSubmit={send}>
        <TextArea {...MESSAGE} hint={hint} onKeyDown={sendByEnter} />
      </Form>
    </div>
  );
}

function sendByEnter(event: KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
    event.preventDefault();
    // Not while the button is disabled, as a form would be.
    event.currentTarget.form?.querySelector<HTMLButtonElement>('[type=submit]')?.click();
  }
}

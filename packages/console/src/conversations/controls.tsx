import { api, bodyOf, runningSandbox } from '../api/client.js';
import { Badge, Button, Callout } from '../ui/blocks.js';
import { useAction } from '../ui/use-action.js';
import { type Conversation, stateOf } from './conversation-queries.js';

/** Pause lets the agent rest, Stop ends everything in its sandbox; after both, Resume goes on. */
export function Controls({ conversation }: { conversation: Conversation }) {
  const { id, sandbox_id: sandbox, sandbox_status: state, execution_status: agent } = conversation;
  const old = [
    ['conversation', id],
    ['sandbox', sandbox],
  ];
  const params = { path: { id } };
  const ofSandbox = { params: { path: { id: sandbox } } };
  const isRunning = state === 'RUNNING';
  const pause = useAction(() => bodyOf(api.POST('/api/v1/app-conversations/{id}/pause', { params })), ...old);
  const stop = useAction(() => bodyOf(api.POST('/api/v1/sandboxes/{id}/pause', ofSandbox)), ...old);
  const resume = useAction(
    async () => {
      if (!isRunning) {
        await bodyOf(api.POST('/api/v1/sandboxes/{id}/resume', ofSandbox));
        await runningSandbox(sandbox);
      }
      if (agent === 'paused' || agent === 'running') {
        await bodyOf(api.POST('/api/v1/app-conversations/{id}/run', { params }));
      }
    },
    ...old,
  );
  const canResume = state === 'PAUSED' || state === 'ERROR' || (isRunning && agent === 'paused');
  return (
    <div className="actions" role="group" aria-label="Agent">
      <Button
        disabled={!isRunning || agent === 'paused'}
        isBusy={pause.isPending}
        title="The agent stops after its current step; its sandbox goes on running"
        onClick={() => pause.mutate()}>
        Pause
      </Button>
      <Button disabled={!canResume} isBusy={resume.isPending} onClick={() => resume.mutate()}>
        Resume
      </Button>
      <Button
        disabled={!isRunning && state !== 'STARTING'}
        isBusy={stop.isPending}
        title="Everything in the sandbox ends; files and conversation stay"
        onClick={() => stop.mutate()}>
        Stop
      </Button>
      <Badge state={stateOf(conversation)} />
    </div>
  );
}

/** The agent asks before it goes on: what it wants to do is the last step above. */
export function Confirmation({ id }: { id: string }) {
  const answer = useAction(
    (accept: boolean) =>
      bodyOf(
        api.POST('/api/v1/app-conversations/{id}/respond-to-confirmation', {
          params: { path: { id } },
          body: { accept, ...(!accept && { reason: 'Rejected in the console.' }) },
        }),
      ),
    ['conversation', id],
  );
  return (
    <Callout kind="warning" title="The agent waits for your word">
      <p>It wants to do the last step above. It goes on when you confirm, and tries otherwise when you reject.</p>
      <div className="actions">
        <Button look="primary" isBusy={answer.isPending} onClick={() => answer.mutate(true)}>
          Confirm
        </Button>
        <Button look="danger" disabled={answer.isPending} onClick={() => answer.mutate(false)}>
          Reject
        </Button>
      </div>
    </Callout>
  );
}

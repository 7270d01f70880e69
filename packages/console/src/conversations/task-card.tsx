import type { ReactNode } from 'react';
import { providerName, type Schemas } from '../api/client.js';
import { Elsewhere } from '../ui/blocks.js';
import { KINDS, type Task } from '../work/suggested-tasks.js';

/** The suggested task that a conversation was started with. */
export interface GivenTask {
  title: string;
  /** `#479`, or the repository. */
  name: string;
  facts: string;
  url: string | null;
}

/** Returns null for a start in the user's own words. */
export function taskOf(start: Schemas['AppConversationStartTask'] | null | undefined): GivenTask | null {
  const given = start?.request.suggested_task as Omit<Task, 'url'> | null | undefined;
  if (!start || !given) {
    return null;
  }
  const { title, repo, issue_number: number, task_type: kind, git_provider: provider } = given;
  const name = number > 0 ? `#${number}` : repo;
  const facts = [KINDS[kind], providerName(provider), repo, number > 0 && `#${number}`].filter(Boolean).join(' · ');
  return { title, name, facts, url: start.task_url ?? null };
}

/** What was asked for, and, folded, in which words the service has told the agent. */
export function TaskCard({ task: { title, facts, url }, instructions }: { task: GivenTask; instructions: ReactNode }) {
  return (
    <div className="task">
      <p className="row-title">{url === null ? title : <Elsewhere href={url} text={title} />}</p>
      <p className="hint">{facts}</p>
      <details className="thinking">
        <summary>Instructions for the agent</summary>
        {instructions}
      </details>
    </div>
  );
}

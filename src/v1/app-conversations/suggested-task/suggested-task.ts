import type { ForgeKind, ProviderType } from '../../../git-providers/git-provider.types.js';
import type { TaskType } from '../../../suggested-tasks/task-type.js';

/** A piece of work as `GET /api/user/suggested-tasks` lists it and a client hands it back. */
export interface SuggestedTask {
  git_provider: ProviderType;
  task_type: TaskType;
  repo: string;
  /** 0 for CREATE_MICROAGENT. */
  issue_number: number;
  title: string;
}

/** Where the work is done. */
export interface TaskForge {
  kind: ForgeKind;
  /** Base address of the host's API, without a trailing slash. */
  apiUrl: string;
  /** The variable that the agent's tools find the token in; null where they get none. */
  tokenVariable: string | null;
}

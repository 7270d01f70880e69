import type { SandboxRowStatus } from '../sandboxes/sandbox-status.js';
import type { StartRequest } from './start/start-request.js';
import type { StartTaskStatus } from './start-task-status.js';

/** A start task with what is known of its sandbox. */
export interface StartTaskRow {
  id: string;
  user_id: string;
  status: StartTaskStatus;
  detail: string | null;
  app_conversation_id: string;
  sandbox_id: string;
  /** Secrets in it are masked. */
  request: StartRequest;
  notes: string[];
  created_at: Date;
  updated_at: Date;
  sandbox_status: SandboxRowStatus | null;
  address: string | null;
  /** The moment it is ordered by, with microseconds. */
  cursor_at: string;
}

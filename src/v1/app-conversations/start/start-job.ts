import { jsonText } from '../../../common/json-access.js';

/** What the job of a start carries: the row is the truth, so only its id. */
export interface StartJob {
  taskId: string;
}

/** @throws TypeError for something else, which only a fault of ours can send */
export function readStartJob(data: unknown): StartJob {
  const taskId = jsonText(data, 'taskId');
  if (taskId === null) {
    throw new TypeError('a job of a start names no task');
  }
  return { taskId };
}

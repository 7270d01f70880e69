import { engineStatus } from './engine-failure.js';

/** What the engine answers, or null when it answers with one of the statuses. */
export async function unlessStatus<T>(statuses: number[], answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    const status = engineStatus(error);
    if (status !== null && statuses.includes(status)) {
      return null;
    }
    throw error;
  }
}

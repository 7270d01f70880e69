import { z } from 'zod';

/** Body of the two ways to run a command; frames of clients on the socket too. */
export const bashRequestSchema = z.object({
  command: z.string().min(1),
  cwd: z.string().nullish(),
  timeout: z.number().positive().max(86_400).default(300),
});

import { z } from 'zod';
import type { Content } from '../../agent-protocol/content.js';

const text = z.object({ type: z.literal('text').default('text'), text: z.string() });
/** A model's API takes no other, and a message that it refuses would be refused at every later step too. */
const imageUrl = z.string().refine((url) => /^(https?|data):/i.test(url) && URL.canParse(url), {
  error: 'Input should be an http(s) or data URL',
});
const image = z.object({ type: z.literal('image'), image_urls: z.array(imageUrl) });
const content = z.union([
  z.string().transform((words): Content[] => [{ type: 'text', text: words }]),
  z.array(z.union([image, text])),
]);

/** A message from a client: over HTTP with `run`, over a socket without. */
export const messageSchema = z.object({
  role: z.literal('user').default('user'),
  content: content.refine((parts) => parts.length > 0, 'A message needs at least one part'),
  run: z.boolean().default(false),
});

/** A message as it was understood. */
export type IncomingMessage = z.infer<typeof messageSchema>;

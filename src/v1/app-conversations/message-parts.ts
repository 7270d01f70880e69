import type { SendMessageRequest } from '@slipway/agent-protocol/conversation-api.js';
import type { Content } from '@slipway/agent-protocol/events.js';
import type { FieldProblem } from '@slipway/api/validation/field.js';
import type { StartMessage } from './start-task.entity.js';

/** The web client of OpenHands writes `image_url`. */
export const PART_TYPES = ['text', 'image', 'image_url'] as const;
export const MAX_PARTS = 100;
const IMAGE_URL = /^(?:https?:\/\/|data:image\/[a-z0-9.+-]+;base64,)\S+$/i;

/** A text, or images in either of the two ways that clients write them. */
export interface MessagePart {
  type?: (typeof PART_TYPES)[number];
  text?: string;
  image_urls?: string[];
  image_url?: { url: string };
  cache_prompt?: boolean;
}

interface UserMessage {
  content: MessagePart[];
  run?: boolean;
}

export function toSendMessageRequest({ content, run = true }: UserMessage): SendMessageRequest {
  return { role: 'user', content: content.map(toContent), run };
}

export function toStartMessage({ content, run = false }: UserMessage): StartMessage {
  return { role: 'user', content: content.map(toContent), run };
}

function toContent(part: MessagePart): Content {
  const hint = part.cache_prompt === undefined ? {} : { cache_prompt: part.cache_prompt };
  return isImage(part)
    ? { type: 'image', image_urls: imageUrls(part), ...hint }
    : { type: 'text', text: part.text ?? '', ...hint };
}

/** Problems of the parts, one by one and together. */
export function messagePartProblems(
  parts: readonly { index: number; element: MessagePart }[],
): FieldProblem[] {
  const problems = parts.flatMap(({ index, element }) =>
    partProblems(element).map((problem) => ({ ...problem, path: [String(index), ...(problem.path ?? [])] })),
  );
  return problems.length === 0 && !parts.some(({ element }) => saysSomething(element))
    ? [{ type: 'value_error', msg: 'Expected a message that says something: some text, or an image.' }]
    : problems;
}

function partProblems(part: MessagePart): FieldProblem[] {
  if (!isImage(part)) {
    return part.text === undefined
      ? [{ type: 'missing', msg: 'This member is required.', path: ['text'] }]
      : [];
  }
  const urls = imageUrls(part);
  if (urls.length === 0) {
    return [{ type: 'missing', msg: 'This member is required.', path: ['image_urls'] }];
  }
  return urls.flatMap((url, index) =>
    typeof url !== 'string' || IMAGE_URL.test(url)
      ? []
      : [
          {
            type: 'value_error',
            msg: 'Expected an address (http, https) or a data URL of an image in base64.',
            path: Array.isArray(part.image_urls) ? ['image_urls', String(index)] : ['image_url', 'url'],
          },
        ],
  );
}

function isImage({ type, text, image_urls: urls, image_url: url }: MessagePart): boolean {
  switch (type) {
    case 'text':
      return false;
    case 'image':
    case 'image_url':
      return true;
    default:
      return text === undefined && (urls !== undefined || url !== undefined);
  }
}

function imageUrls(part: MessagePart): string[] {
  if (Array.isArray(part.image_urls)) {
    return part.image_urls;
  }
  return part.image_url?.url === undefined ? [] : [part.image_url.url];
}

/** A text of another type counts too, because it is reported on its own. */
function saysSomething(part: MessagePart): boolean {
  return isImage(part) || typeof part.text !== 'string' || part.text.trim() !== '';
}

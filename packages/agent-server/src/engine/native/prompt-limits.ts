import { hostOf, isOpenAi } from '@slipway/common/model-endpoint.js';
import { imageType, isBase64 } from '@slipway/common/well-formed-text.js';
import type { FilePart, ModelMessage, TextPart } from 'ai';
import type { OpaqueMembers } from '../agent-engine.js';
import { longestSide } from './image-sides.js';
import { NO_SIGNATURE } from './sealed-thoughts.js';

export interface ModelTarget {
  api: 'openai' | 'anthropic';
  /** Address of the API; null means Anthropic's own. */
  baseUrl: string | null;
  model: string;
}

export interface TargetRules {
  callId: RegExp;
  imageUrls: 'https' | 'any';
  /** Whether the longest side of an image has a limit, which is lower where there are many. */
  limitsSides: boolean;
  maxDescription: number;
  /** Schemas of tools are Google's, which are a part of OpenAPI's. */
  isGoogle: boolean;
  /** Whether the chat template requires user and agent to alternate, and an agent's message after a tool's result. */
  alternates: boolean;
  /** Sent along with calls that another model wrote. */
  foreignCall: OpaqueMembers | null;
}

const UNLIMITED = Number.MAX_SAFE_INTEGER;
/** Families of models whose chat templates raise an error otherwise. */
const STRICT_TEMPLATES = /gemma|mixtral|ministral/i;
const MISTRAL = /mistral|codestral|devstral|magistral|pixtral/i;

/** Names of the model that wrote a response: what it signed is of use to no other. */
export function originOf({ api, baseUrl, model }: ModelTarget): string {
  return `${api} ${baseUrl ?? ''} ${model}`;
}

/** The documented limits of a server, and those of its chat template where the model's name tells. */
export function targetRules({ api, baseUrl, model }: ModelTarget): TargetRules {
  if (api === 'anthropic') {
    return {
      callId: /^[a-zA-Z0-9_-]{1,64}$/,
      imageUrls: 'https',
      limitsSides: true,
      maxDescription: UNLIMITED,
      isGoogle: false,
      alternates: false,
      foreignCall: null,
    };
  }
  const host = hostOf(baseUrl ?? '');
  const isMistral = MISTRAL.test(model) || host.endsWith('mistral.ai');
  const isGemini = /gemini/i.test(model) || host.endsWith('googleapis.com');
  const limitsTools = isOpenAi(baseUrl ?? '') || host.endsWith('.azure.com');
  return {
    callId: isMistral ? /^[a-zA-Z0-9]{9}$/ : /^[!-~]{1,40}$/,
    imageUrls: 'any',
    limitsSides: /claude/i.test(model),
    maxDescription: limitsTools ? 1_024 : UNLIMITED,
    isGoogle: isGemini,
    alternates: isMistral || STRICT_TEMPLATES.test(model),
    foreignCall: isGemini ? { extra_content: { google: { thought_signature: NO_SIGNATURE } } } : null,
  };
}

/** Bytes. Anthropic takes no larger image, and few servers do. */
const MAX_IMAGE_BYTES = 5 * 1024 * 1024;
/** Characters in base64, of all images of a request. */
const MAX_ALL = 20 * 1024 * 1024;
const MAX_IMAGES = 50;
/** Pixels that Claude takes (https://platform.claude.com/docs/en/build-with-claude/vision), and from how many images on fewer. */
const [MAX_SIDE, MAX_SIDE_OF_MANY, MANY_IMAGES] = [8_000, 2_000, 20];
const MAX_ADDRESS = 8_192;

export type LeftOutImages = 'none' | 'addresses' | 'all';

const DATA_URL = /^data:/i;

export function imagesIn(messages: readonly ModelMessage[]): { all: number; byAddress: number } {
  const images = messages
    .flatMap((message) =>
      message.role === 'user' && typeof message.content !== 'string' ? message.content : [],
    )
    .filter((part) => part.type === 'file');
  return {
    all: images.length,
    byAddress: images.filter(({ data }) => typeof data === 'string' && !DATA_URL.test(data)).length,
  };
}

/** What is left of the limits of one request, which the newest images take first. */
export class ImageAllowance {
  #count = MAX_IMAGES;
  #characters = MAX_ALL;
  readonly maxSide: number;

  constructor({ limitsSides }: Pick<TargetRules, 'limitsSides'>, images: number) {
    this.maxSide = limitsSides ? (images > MANY_IMAGES ? MAX_SIDE_OF_MANY : MAX_SIDE) : Infinity;
  }

  take(characters: number): boolean {
    const hasRoom = this.#count > 0 && characters <= this.#characters;
    if (hasRoom) {
      this.#count -= 1;
      this.#characters -= characters;
    }
    return hasRoom;
  }
}

export function imagePart(
  data: FilePart['data'],
  { imageUrls }: Pick<TargetRules, 'imageUrls'>,
  { allowance, leftOut: refused }: { allowance: ImageAllowance; leftOut: LeftOutImages },
): FilePart | TextPart {
  const address = data instanceof URL ? data.href : data;
  if (typeof address !== 'string') {
    return leftOut('it has no address');
  }
  const isData = DATA_URL.test(address);
  if (refused === 'all' || (refused === 'addresses' && !isData)) {
    return leftOut('the model refused it');
  }
  if (!isData) {
    const problem = addressProblem(address, imageUrls);
    if (problem !== null) {
      return leftOut(problem);
    }
    return allowance.take(0)
      ? { type: 'file', data: new URL(address), mediaType: 'image' }
      : leftOut('there are too many');
  }
  const comma = address.indexOf(',');
  const base64 = address.slice(comma + 1).replace(/\s/g, '');
  if (
    !/;base64$/i.test(address.slice(0, Math.max(comma, 0))) ||
    base64.length % 4 !== 0 ||
    !isBase64(base64)
  ) {
    return leftOut('its data is damaged');
  }
  const mediaType = imageType(base64);
  if (mediaType === null) {
    return leftOut('it is no PNG, JPEG, GIF or WebP');
  }
  if (base64.length > (MAX_IMAGE_BYTES / 3) * 4) {
    return leftOut('it is larger than 5 MiB');
  }
  if (allowance.maxSide < Infinity && longestSide(base64) > allowance.maxSide) {
    return leftOut(`a side has more than ${allowance.maxSide} pixels; a smaller copy would be shown`);
  }
  return allowance.take(base64.length)
    ? { type: 'file', data: new URL(`data:${mediaType};base64,${base64}`), mediaType }
    : leftOut('there are too many');
}

function leftOut(reason: string): TextPart {
  return { type: 'text', text: `[an image was left out: ${reason}]` };
}

function addressProblem(address: string, accepted: TargetRules['imageUrls']): string | null {
  const protocol = URL.parse(address)?.protocol ?? '';
  if (!['http:', 'https:'].includes(protocol) || address.length > MAX_ADDRESS) {
    return 'its address cannot be loaded';
  }
  return protocol === 'https:' || accepted === 'any'
    ? null
    : 'the model loads images from https addresses only';
}

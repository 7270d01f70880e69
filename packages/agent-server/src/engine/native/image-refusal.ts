import { jsonText } from '@slipway/common/json-access.js';
import type { EngineHost } from '../agent-engine.js';
import { conversationFailure } from '../limits.js';
import { LlmFailure } from './llm-failure.js';
import { callModelWithRetries, type ModelRequest, type ModelResponse } from './model-call.js';
import { originOf } from './language-model.js';
import type { Patience } from './patience.js';
import { imagesIn, type LeftOutImages } from './prompt-images.js';

const MODEL = 'imagesRefusedBy';
const LEFT_OUT = 'imagesLeftOut';

/**
 * Calls the model. If it refuses images, asks again with notes in their place: first for those that it would load
 * itself, then for all. Remembers what the model accepts.
 * @throws LlmFailure the first one, if images are not the reason
 */
export async function callModelWithImages(
  host: EngineHost,
  request: ModelRequest,
  patience: Patience,
): Promise<ModelResponse> {
  const origin = originOf(request.model.target);
  const known = knownLimit(host, origin);
  try {
    return await callModelWithRetries({ ...request, leftOutImages: known }, patience);
  } catch (error) {
    if (!(error instanceof LlmFailure) || !error.mayBeImages) {
      throw error;
    }
    const images = imagesIn(request.messages);
    const limits: LeftOutImages[] =
      images.byAddress > 0 && images.byAddress < images.all ? ['addresses'] : [];
    for (const leftOutImages of images.all === 0 || known === 'all' ? [] : [...limits, 'all' as const]) {
      const response = await callModelWithRetries({ ...request, leftOutImages }, patience).catch(rejection);
      if (response !== null) {
        await remember(host, origin, leftOutImages, error.message);
        return response;
      }
    }
    throw error;
  }
}

function knownLimit(host: EngineHost, origin: string): LeftOutImages {
  const memory = host.memory();
  const limit = memory[MODEL] === origin ? jsonText(memory, LEFT_OUT) : null;
  return limit === 'all' || limit === 'addresses' ? limit : 'none';
}

async function remember(
  host: EngineHost,
  origin: string,
  leftOut: LeftOutImages,
  reason: string,
): Promise<void> {
  await host.remember({ ...host.memory(), [MODEL]: origin, [LEFT_OUT]: leftOut });
  const which = leftOut === 'all' ? 'images' : 'images from addresses';
  const detail = `The model refused ${which}, so it works without them: ${reason}`;
  await host.append(conversationFailure('ImagesLeftOut', detail));
}

/** Null: refused again. */
function rejection(error: unknown): null {
  if (error instanceof LlmFailure && error.mayBeImages) {
    return null;
  }
  throw error;
}

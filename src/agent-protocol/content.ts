/** A piece of text in a message, a thought or a tool's result. */
export interface TextContent {
  type: 'text';
  text: string;
  cache_prompt?: boolean;
}

/** Pictures in a message or a tool's result: http(s) or data URLs. */
export interface ImageContent {
  type: 'image';
  image_urls: string[];
  cache_prompt?: boolean;
}

export type Content = TextContent | ImageContent;

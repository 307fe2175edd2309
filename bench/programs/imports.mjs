// What a program pays for having Sluice, before it does anything.
import "@sluice/core";
import "@sluice/stages";
